import { integer, required, string, struct } from './schema.ts';

/** UploadSessionCursor: `offset` is how much the client believes to have sent. */
export const sessionCursorFields = {
  session_id: required(string()),
  offset: required(integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
};

export const sessionCursor = struct(sessionCursorFields);

/** The cursor in the store's terms. */
export function sessionAt(cursor: ReturnType<typeof sessionCursor>): {
  readonly session: string;
  readonly offset: number;
} {
  return { session: cursor.session_id, offset: cursor.offset };
}
