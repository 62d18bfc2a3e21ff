import { listOf, textOrNothing } from './answers.ts';
import type { Connection } from './connection.ts';

/** Maximum number of fields in one command, because Redis does nothing else meanwhile. */
const FIELDS_MAX = 1_000;

/** Returns the existing fields of a hash, read in commands of bounded size. */
export async function fieldsOf(
  connection: Connection,
  key: string,
  names: readonly string[],
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  await Promise.all(
    inPieces(names).map(async (piece) => {
      const answers = listOf(await connection.command('HMGET', key, ...piece));
      for (const [index, name] of piece.entries()) {
        const text = textOrNothing(answers[index] ?? null);
        if (text !== undefined) found.set(name, text);
      }
    }),
  );
  return found;
}

export function inPieces(names: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(names.length / FIELDS_MAX);
  return Array.from({ length: count }, (_, index) =>
    names.slice(index * FIELDS_MAX, (index + 1) * FIELDS_MAX),
  );
}
