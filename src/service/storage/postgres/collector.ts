import type { Queries } from '../../postgres/queries.ts';
import { changesOf, rowsOf } from '../../postgres/queries.ts';
import { type BlockPlace, hashIn } from '../blocks/block-place.ts';

/** Names that are looked up at once. */
const NAMES = 1000;

/** How long a commit is kept after the next one, for copies that are behind and for cursors that have not been used. */
const COMMITS_KEPT = '7 days';

/** How long an upload of 150 MiB and its commit may take, in ms. */
const UPLOAD_MS_MAX = 24 * 60 * 60 * 1000;

/** Returns how long a block is kept to which nothing refers, in ms: at least as long as an upload may take. */
export function keptMsOf(askedMs = 0, uploadMsMax = UPLOAD_MS_MAX): number {
  return Math.max(askedMs, uploadMsMax);
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

/**
 * Returns the number of removed blocks. A commit that refers to a block changes its row in `condemned_block` (`storeCommits`):
 * either it is seen here, or it fails.
 */
async function collectSome(
  { on, blocks, keptMs }: CollectorParts,
  names: readonly string[],
): Promise<number> {
  const referred = await referredTo(on, names);
  const others = names.filter((name) => !referred.has(name));
  await spare(on, [...referred], false);
  await on.query(
    'INSERT INTO davgate.condemned_block (name) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING',
    [others],
  );
  const due = await rowsOf<{ name: string }>(
    on,
    `UPDATE davgate.condemned_block SET is_final = true
     WHERE name = ANY($1) AND since < now() - $2 * interval '1 millisecond' RETURNING name`,
    others,
    keptMs,
  );
  // Looked up again: a commit may have come since.
  const kept = await referredTo(
    on,
    due.map(({ name }) => name),
  );
  await spare(on, [...kept], true);
  return await removeAll(
    blocks,
    due.flatMap(({ name }) => (kept.has(name) ? [] : [name])),
  );
}

/** Takes blocks off the list of those without a reference. Those whose removal another process has begun stay there unless `isFinal`. */
async function spare(on: Queries, names: readonly string[], isFinal: boolean): Promise<void> {
  await on.query('DELETE FROM davgate.condemned_block WHERE name = ANY($1) AND (NOT is_final OR $2)', [
    names,
    isFinal,
  ]);
}

/** Returns the number of names. A block that cannot be removed does not keep the others; its failure is thrown at the end. */
async function removeAll(blocks: BlockPlace, names: readonly string[]): Promise<number> {
  const failures: unknown[] = [];
  for (const name of names) await blocks.remove(name).catch((failure: unknown) => failures.push(failure));
  if (failures.length > 0) throw failures[0];
  return names.length;
}

async function referredTo(on: Queries, names: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await rowsOf<{ name: string }>(
    on,
    'SELECT name FROM davgate.block_name WHERE name = ANY($1)',
    names,
  );
  return new Set(rows.map(({ name }) => name));
}

/**
 * Forgets old commits, the bytes of small blocks that have not been needed for a while, and the names of blocks that were
 * removed so long ago that no upload can refer to them.
 */
export async function forgetOld(on: Queries, keptMs: number): Promise<void> {
  // The last one, which has no next one, stays: it tells whether a commit without an answer took place.
  await on.query(
    `DELETE FROM davgate.commit USING davgate.commit AS next
     WHERE next.ns = commit.ns AND next.version = commit.version + 1
       AND next.made < now() - interval '${COMMITS_KEPT}'`,
  );
  await on.query(
    `DELETE FROM davgate.condemned_block
     WHERE is_final AND since < now() - interval '${COMMITS_KEPT}' - $1 * interval '1 millisecond'`,
    [keptMs],
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
