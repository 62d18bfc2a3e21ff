import { changesOf, deleteUnlocked, type Queries, rowsOf } from '../../postgres/queries.ts';
import { type BlockPlace, hashIn } from '../blocks/block-place.ts';

/** Names that are looked up at once. */
const NAMES = 1000;

/** How long a commit is kept after the next one, for copies that are behind and for cursors that have not been used. */
const COMMITS_KEPT = '7 days';

/** Namespaces whose commits one statement forgets, and commits of each: it takes some 0.1 s. */
const NAMESPACES_AT_ONCE = 100;
const COMMITS_AT_ONCE = 100;

/** Rows of other tables that one statement forgets. */
const ROWS_AT_ONCE = 10_000;

/** How long an upload of 150 MiB and its commit may take, in ms. */
const UPLOAD_MS_MAX = 24 * 60 * 60 * 1000;

/** Returns how long a block is kept to which nothing refers, in ms: at least as long as an upload may take. */
export function keptMsOf(askedMs = 0, uploadMsMax = UPLOAD_MS_MAX): number {
  return Math.max(askedMs, uploadMsMax);
}

export interface CollectorDeps {
  readonly on: Queries;
  readonly blocks: BlockPlace;
  /** See `keptMsOf`. */
  readonly keptMs: number;
}

/** What a search for blocks without a reference has done. */
export interface Collected {
  /** Number of blocks that were removed, also when something failed. */
  readonly removed: number;
  /** The first failure: of the search, which ended it, or of the removal of a block. */
  readonly failure?: unknown;
}

/**
 * Removes the blocks to which no namespace refers. One is condemned when it is found without a reference, and removed when it
 * still is after a while: it may belong to an upload that has not been committed yet. Ends when `closing` is aborted. A block
 * that cannot be removed does not keep the others. Never rejects.
 */
export async function collectBlocks(deps: CollectorDeps, closing: AbortSignal): Promise<Collected> {
  let removed = 0;
  const failures: unknown[] = [];
  const onFailure = (failure: unknown) => void failures.push(failure);
  const remove = async (name: string) => {
    await deps.blocks.remove(name);
    removed += 1;
  };
  const search = async () => {
    let names: string[] = [];
    const collect = async () => {
      for (const name of await dueAmong(deps, names)) await remove(name).catch(onFailure);
      names = [];
    };
    for await (const name of deps.blocks.names()) {
      if (closing.aborted) return;
      if (isSharedName(name)) names.push(name);
      if (names.length === NAMES) await collect();
    }
    await collect();
  };
  await search().catch(onFailure);
  return { removed, failure: failures[0] };
}

/** Whether services that share their blocks have made this name; one that has the folder for itself adds no ending. */
export function isSharedName(name: string): boolean {
  const hash = hashIn(name);
  return hash !== undefined && hash !== name;
}

/**
 * Returns the blocks whose time is over, and which can be removed now. A commit that refers to a block changes its row in
 * `condemned_block` (`storeCommits`), which then has no time: either it is seen here, or it fails. The time begins when the
 * block is found without a reference, however long ago the commit was.
 */
async function dueAmong({ on, keptMs }: CollectorDeps, names: readonly string[]): Promise<readonly string[]> {
  const referred = await referredTo(on, names);
  const others = names.filter((name) => !referred.has(name));
  await spare(on, [...referred], false);
  const condemned = await namesOf(
    on,
    `WITH new AS (
       INSERT INTO davgate.condemned_block (name) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING name),
     again AS (
       UPDATE davgate.condemned_block SET since = now() WHERE name = ANY($1) AND since = 'infinity' RETURNING name)
     SELECT name FROM new UNION ALL SELECT name FROM again`,
    others,
  );
  const due = await namesOf(
    on,
    `UPDATE davgate.condemned_block SET is_final = true
     WHERE name = ANY($1) AND since < now() - $2 * interval '1 millisecond' RETURNING name`,
    others,
    keptMs,
  );
  // Looked up again: a commit may have come since.
  const kept = await referredTo(on, [...condemned, ...due]);
  await spare(on, [...kept], true);
  return due.filter((name) => !kept.has(name));
}

/**
 * Takes blocks off the list of those without a reference. Those whose removal another process has begun stay there unless
 * `isFinal`.
 */
async function spare(on: Queries, names: readonly string[], isFinal: boolean): Promise<void> {
  await on.query('DELETE FROM davgate.condemned_block WHERE name = ANY($1) AND (NOT is_final OR $2)', [
    names,
    isFinal,
  ]);
}

async function referredTo(on: Queries, names: readonly string[]): Promise<ReadonlySet<string>> {
  return new Set(await namesOf(on, 'SELECT name FROM davgate.block_name WHERE name = ANY($1)', names));
}

async function namesOf(on: Queries, text: string, ...values: readonly unknown[]): Promise<readonly string[]> {
  return (await rowsOf<{ name: string }>(on, text, ...values)).map(({ name }) => name);
}

/**
 * Forgets old commits, the bytes of small blocks that have not been needed for a while, and the names of blocks that were
 * removed so long ago that no upload can refer to them. Statements are small: there may be millions of rows, and the time of
 * a statement is limited. Ends when `closing` is aborted.
 */
export async function forgetOld(on: Queries, keptMs: number, closing: AbortSignal): Promise<void> {
  const forgetRows = async (table: string, key: string, condition: string) => {
    let count = ROWS_AT_ONCE;
    while (count === ROWS_AT_ONCE && !closing.aborted)
      count = await deleteUnlocked(on, { table, key, condition, values: [keptMs] }, ROWS_AT_ONCE);
  };
  const isOld = `since < now() - $1 * interval '1 millisecond'`;
  await runDespiteFailures([
    () => forgetCommits(on, closing),
    () => forgetRows('condemned_block', 'name', `is_final AND ${isOld} - interval '${COMMITS_KEPT}'`),
    () => forgetRows('condemned_bytes', 'ctid', isOld),
  ]);
}

/** Forgets commits whose next one is old, a few of each namespace at once. */
async function forgetCommits(on: Queries, closing: AbortSignal): Promise<void> {
  for (let after: number | undefined = 0; after !== undefined; ) {
    const rows: readonly { id: number }[] = await rowsOf<{ id: number }>(
      on,
      `SELECT id FROM davgate.namespace WHERE id > $1 ORDER BY id LIMIT ${NAMESPACES_AT_ONCE}`,
      after,
    );
    const numbers = rows.map(({ id }) => id);
    while (!closing.aborted && (await forgetSomeCommits(on, numbers)) > 0);
    after = closing.aborted ? undefined : numbers.at(-1);
  }
}

/**
 * Forgets some old commits of each of the namespaces. Returns how many. The time of commits grows with their versions, so that
 * the oldest ones are found by the key. The last one, which has no next one, stays: it tells whether a commit without an
 * answer took place.
 */
function forgetSomeCommits(on: Queries, numbers: readonly number[]): Promise<number> {
  return changesOf(
    on,
    `WITH oldest AS (
       SELECT first.*, lead(made) OVER (PARTITION BY ns ORDER BY version) AS next_made
       FROM unnest($1::bigint[]) AS id CROSS JOIN LATERAL (
         SELECT ns, version, made FROM davgate.commit WHERE ns = id ORDER BY version LIMIT ${COMMITS_AT_ONCE + 1}
       ) AS first)
     DELETE FROM davgate.commit USING oldest
     WHERE commit.ns = oldest.ns AND commit.version = oldest.version
       AND next_made < now() - interval '${COMMITS_KEPT}'`,
    numbers,
  );
}

/** Takes steps one after the other, also after one that fails. Throws the first failure at the end. */
export async function runDespiteFailures(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((failure: unknown) => failures.push(failure));
  if (failures.length > 0) throw failures[0];
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
