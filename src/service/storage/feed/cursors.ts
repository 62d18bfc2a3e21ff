import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type CursorOwner, StorageError } from '../storage.ts';

/** Where a reader of a folder stands. */
export interface CursorState {
  readonly ns: number;
  /** The folder's key; `''` is the root. */
  readonly key: string;
  readonly recursive: boolean;
  readonly includeDeleted: boolean;
  /** Changes up to this number are known, or will be once the listing is through. */
  readonly seq: number;
  /** Entries a page, as the first call asked. */
  readonly limit: number;
  /** The last entry of a listing that is not through; `''` and `''` before the first. */
  readonly after?: { readonly parent: string; readonly nameKey: string };
}

const MAC_BYTES = 16;

/** The data directory's tag, in hex. */
const TAG_CHARS = 8;

/** Turns positions into the opaque text clients keep, and back: signed, and bound to who got it. */
export class Cursors {
  constructor(
    private readonly key: Buffer,
    private readonly directoryTag: string,
  ) {}

  /** The text of a position; `owner` is an `ownerDigest`. */
  encode(owner: string, { ns, key, recursive, includeDeleted, seq, limit, after }: CursorState): string {
    const flags = (recursive ? 1 : 0) + (includeDeleted ? 2 : 0);
    const fields = [owner, ns, key, flags, seq, limit, ...(after ? [after.parent, after.nameKey] : [])];
    const payload = Buffer.from(JSON.stringify(fields));
    const head = Buffer.from(this.directoryTag);
    return Buffer.concat([head, this.#mac(payload), payload]).toString('base64url');
  }

  /** Throws `malformed` for what was never a cursor, `reset` for one of another data directory. */
  decode(cursor: string): { readonly owner: string; readonly state: CursorState } {
    const bytes = Buffer.from(cursor, 'base64url');
    const tag = bytes.toString('latin1', 0, TAG_CHARS);
    if (!/^[\w-]+$/.test(cursor) || bytes.length <= TAG_CHARS + MAC_BYTES || !/^[0-9a-f]{8}$/.test(tag))
      throw refused('malformed');
    if (tag !== this.directoryTag) throw refused('reset');
    const payload = bytes.subarray(TAG_CHARS + MAC_BYTES);
    const mac = bytes.subarray(TAG_CHARS, TAG_CHARS + MAC_BYTES);
    if (!timingSafeEqual(mac, this.#mac(payload))) throw refused('malformed');
    return parsed(payload);
  }

  /** Short, as a cursor is checked by us alone and guessing has to ask us each time. */
  #mac(payload: Buffer): Buffer {
    return createHmac('sha256', this.key).update(payload).digest().subarray(0, MAC_BYTES);
  }
}

/** What a cursor keeps of its owner. */
export function ownerDigest({ namespace, account, app }: CursorOwner): string {
  return createHash('sha256')
    .update(JSON.stringify([namespace, account, app]))
    .digest('base64url')
    .slice(0, 16);
}

/** The refusal of a cursor: one that never was, or one that has to start over. */
export function refused(tag: 'reset' | 'malformed'): StorageError {
  return new StorageError({ kind: 'cursor', tag });
}

/** Signed, so it is one of ours: no field is missing. */
type Fields = [
  owner: string,
  ns: number,
  key: string,
  flags: number,
  seq: number,
  limit: number,
  parent?: string,
  nameKey?: string,
];

function parsed(payload: Buffer): { readonly owner: string; readonly state: CursorState } {
  const [owner, ns, key, flags, seq, limit, parent, nameKey] = JSON.parse(payload.toString()) as Fields;
  const scope = { ns, key, recursive: (flags & 1) !== 0, includeDeleted: (flags & 2) !== 0 };
  const state = { ...scope, seq, limit };
  if (parent === undefined || nameKey === undefined) return { owner, state };
  return { owner, state: { ...state, after: { parent, nameKey } } };
}
