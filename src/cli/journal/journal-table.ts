import { type KeptWrite, shortIdOf } from '../../app/journal-admin.ts';
import { asPlainText, tableOf } from '../table.ts';

const HEAD = ['state', 'id', 'written', 'bytes', 'path', 'why'];

/** Length of an id in the table; an id is longer if two writes share its beginning. */
const ID_LENGTH = 8;

/** Returns a table of the writes: the pending ones in order, then the lost ones. */
export function journalTable(writes: readonly KeptWrite[]): string {
  if (writes.length === 0) return 'No pending writes and no lost writes.';
  const hasDrives = new Set(writes.map(({ drive }) => drive)).size > 1;
  const rows = inOrder(writes).map((write) => [
    ...(hasDrives ? [asPlainText(write.drive)] : []),
    write.state,
    idOf(write, writes),
    write.writtenMs === undefined ? '-' : new Date(write.writtenMs).toISOString().slice(0, 19).concat('Z'),
    `${write.sizeBytes}`,
    write.path === undefined ? '-' : asPlainText(write.path),
    asPlainText(write.reason ?? '-'),
  ]);
  return tableOf([[...(hasDrives ? ['drive'] : []), ...HEAD], ...rows]);
}

/** Returns the writes as JSON, in the same order. */
export function journalJson(writes: readonly KeptWrite[]): string {
  const rows = inOrder(writes).map(({ writtenMs, sizeBytes, ...write }) => ({
    ...write,
    bytes: sizeBytes,
    ...(writtenMs !== undefined && { written: new Date(writtenMs).toISOString() }),
  }));
  return JSON.stringify(rows, undefined, 2);
}

function inOrder(writes: readonly KeptWrite[]): readonly KeptWrite[] {
  return [...writes].sort((one, other) => rankOf(one) - rankOf(other));
}

function rankOf({ state }: KeptWrite): number {
  return state === 'waiting' ? 0 : 1;
}

function idOf(write: KeptWrite, all: readonly KeptWrite[]): string {
  const short = shortIdOf(write).slice(0, ID_LENGTH);
  const isShared = all.filter((other) => shortIdOf(other).startsWith(short)).length > 1;
  return asPlainText(isShared ? write.id : short);
}
