import type { Queries } from '../../postgres/queries.ts';
import { changesOf, rowsOf } from '../../postgres/queries.ts';
import { type BlockPlace, hashIn } from '../blocks/block-place.ts';

/** Names that are looked up at once. */
const NAMES = 1000;

/** How long a commit is kept after the next one, for copies that are behind and for cursors that have not been used. */
const COMMITS_KEPT = '7 days';

/** No upload takes longer, in ms: 150 MiB and its commit. */
const UPLOAD_MS_MAX = 24 * 60 * 60 * 1000;

/** Returns how long a block is kept to which nothing refers, in ms: longer than any upload takes. */
export function keptMsOf(askedMs = 0): number {
  return Math.max(askedMs, UPLOAD_MS_MAX);
}

export interface CollectorParts {
  readonly on: Queries;
  readonly blocks: BlockPlace;
  /** See `keptMsOf`. */
  readonly keptMs: number;
}

/**
 * Removes the blocks to which no namespace refers. One is condemned when it is found without a reference, and removed when
 * it still is after a while: it may belong to an upload that has not been committed yet. Ends when `closing` is aborted.
 */
export async function collectBlocks(parts: CollectorParts, closing: AbortSignal): Promise<number> {
  let removed = 0;
  let names: string[] = [];
  const collect = async () => {
    removed += await collectSome(parts, names);
    names = [];
  };
  for await (const name of parts.blocks.names()) {
    if (closing.aborted) return removed;
    if (isSharedName(name)) names.push(name);
    if (names.length === NAMES) await collect();
  }
  await collect();
  return removed;
}

/** Whether services that share their blocks have made this name; one that has the folder for itself adds no ending. */
export function isSharedName(name: string): boolean {
  const hash = hashIn(name);
  return hash !== undefined && hash !== name;
}

/** Returns the number of removed blocks. */
async function collectSome(
  { on, blocks, keptMs }: CollectorParts,
  names: readonly string[],
): Promise<number> {
  const referred = await referredTo(on, names);
  const others = names.filter((name) => !referred.has(name));
  await on.query('DELETE FROM davgate.condemned_block WHERE name = ANY($1)', [[...referred]]);
  await on.query(
    'INSERT INTO davgate.condemned_block (name) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING',
    [others],
  );
  const due = await rowsOf<{ name: string }>(
    on,
    `SELECT name FROM davgate.condemned_block
     WHERE name = ANY($1) AND since < now() - $2 * interval '1 millisecond'`,
    others,
    keptMs,
  );
  // Looked up again: a commit may have come since.
  const kept = await referredTo(
    on,
    due.map(({ name }) => name),
  );
  const unneeded = due.flatMap(({ name }) => (kept.has(name) ? [] : [name]));
  for (const name of unneeded) await blocks.remove(name);
  await on.query('DELETE FROM davgate.condemned_block WHERE name = ANY($1)', [unneeded]);
  return unneeded.length;
}

async function referredTo(on: Queries, names: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await rowsOf<{ name: string }>(
    on,
    'SELECT name FROM davgate.block_name WHERE name = ANY($1)',
    names,
  );
  return new Set(rows.map(({ name }) => name));
}

/** Forgets old commits, and the bytes of small blocks that have not been needed for a while. */
export async function forgetOld(on: Queries, keptMs: number): Promise<void> {
  // The last one, which has no next one, stays: it tells whether a commit without an answer took place.
  await on.query(
    `DELETE FROM davgate.commit USING davgate.commit AS next
     WHERE next.ns = commit.ns AND next.version = commit.version + 1
       AND next.made < now() - interval '${COMMITS_KEPT}'`,
  );
  await on.query(`DELETE FROM davgate.condemned_bytes WHERE since < now() - $1 * interval '1 millisecond'`, [
    keptMs,
  ]);
}

/** Takes a lease, or renews one's own. Returns whether this process has it. */
export async function takeLease(on: Queries, name: string, holder: string, ms: number): Promise<boolean> {
  const changes = await changesOf(
    on,
    `INSERT INTO davgate.lease (name, holder, until) VALUES ($1, $2, now() + $3 * interval '1 millisecond')
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
       WHERE lease.holder = excluded.holder OR lease.until < now()`,
    name,
    holder,
    ms,
  );
  return changes > 0;
}
