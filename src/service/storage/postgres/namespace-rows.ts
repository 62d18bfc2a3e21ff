import { randomUUID } from 'node:crypto';
import type { QueryResult, QueryResultRow } from 'pg';
import { findRow, type Queries, rowsOf } from '../../postgres/queries.ts';
import { tickAt } from '../feed/ticks.ts';
import { HISTORY_LIFE_MS } from '../housekeeping/retention.ts';
import { SESSION_LIFE_MS } from '../sessions/sessions.ts';
import type { CopiedState, Key, NamespaceChange, NamespaceRow } from './namespace-change.ts';
import { columnsOf, type Row, TABLES, type Table, type Value } from './tables.ts';

const SELECT_NAMESPACE = `
  SELECT id, name, version, mark, limit_bytes AS "limitBytes", used_bytes AS "usedBytes", horizon, tick
  FROM davgate.namespace`;

/** Returns a namespace by its number. */
export function namespaceOf(on: Queries, ns: number): Promise<NamespaceRow | undefined> {
  return findRow(on, `${SELECT_NAMESPACE} WHERE id = $1`, ns);
}

/** How long a process that hangs, or whose network is cut, keeps the lock of a namespace, in ms. */
const IDLE_MS = 30_000;

/**
 * Begins a transaction that locks a namespace, in one round trip. Returns the namespace, to which no other transaction
 * can commit until this one ends. Fails with SQLSTATE 55P03 after `waitMs`.
 */
export async function beginWithLock(
  on: Queries,
  ns: number,
  waitMs: number,
): Promise<NamespaceRow | undefined> {
  const [namespace] = await beginWith(on, `WHERE id = ${ns} FOR UPDATE`, waitMs);
  return namespace;
}

/**
 * Like `beginWithLock` for several namespaces. Returns those whose locks are free, by number, without waiting for others.
 * Later statements fail with SQLSTATE 55P03 when they have waited `waitMs` for another lock.
 */
export async function beginWithFreeLocks(
  on: Queries,
  numbers: readonly number[],
  waitMs: number,
): Promise<ReadonlyMap<number, NamespaceRow>> {
  const rows = await beginWith(on, `WHERE id IN (${numbers.join(', ')}) FOR UPDATE SKIP LOCKED`, waitMs);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Begins a transaction and selects namespaces. */
async function beginWith(on: Queries, which: string, waitMs: number): Promise<readonly NamespaceRow[]> {
  const text = `BEGIN; SET LOCAL lock_timeout = ${waitMs};
    SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS};
    ${SELECT_NAMESPACE} ${which}`;
  // Several statements have several results, which the types of the client do not know.
  const results = (await on.query<NamespaceRow & QueryResultRow>(text)) as unknown as QueryResult<
    NamespaceRow & QueryResultRow
  >[];
  return results.at(-1)?.rows ?? [];
}

/** Creates a namespace, or changes its limit, which is a commit without rows. */
export async function putNamespace(on: Queries, name: string, limitBytes: number): Promise<void> {
  await on.query(
    `WITH put AS (
       INSERT INTO davgate.namespace (name, limit_bytes) VALUES ($1, $2)
       ON CONFLICT (name) DO UPDATE
         SET limit_bytes = excluded.limit_bytes, version = namespace.version + 1, mark = $3
         WHERE namespace.limit_bytes <> excluded.limit_bytes
       RETURNING id, version)
     INSERT INTO davgate.commit (ns, version, mark, tables) SELECT id, version, $3, '{}' FROM put WHERE version > 0`,
    [name, limitBytes, randomUUID()],
  );
}

interface CommitRow extends QueryResultRow {
  readonly version: number;
  readonly mark: string;
  readonly tables: readonly string[];
  readonly gone: Readonly<Record<string, readonly Key[]>> | null;
}

/** Commits that a copy catches up with at once. */
const COMMITS_MAX = 1000;

/**
 * Whether a copy lacks so many commits that reading them takes longer than others should wait for a lock, and that a reader
 * loads it again instead, in pieces.
 */
export function isFarBehind(namespace: NamespaceRow, { version = 0 }: CopiedState): boolean {
  return namespace.version - version > COMMITS_MAX;
}

/**
 * Returns what a copy of a namespace lacks; `undefined` when that is not known: its last commit is too old, or has been lost
 * with a database that was restored, where the number may even be that of another namespace. The transaction sees one state
 * of the database, or has locked the namespace.
 */
export async function changeSince(
  on: Queries,
  namespace: NamespaceRow,
  { name, version: since = 0, mark }: CopiedState,
): Promise<NamespaceChange | undefined> {
  const behind = namespace.version - since;
  if (behind < 0 || namespace.name !== name) return undefined;
  const [last, ...commits] = await rowsOf<CommitRow>(
    on,
    `SELECT 0 AS version, '' AS mark, '{}'::text[] AS tables, NULL::jsonb AS gone WHERE $2 = 0
     UNION ALL
     SELECT version, mark, tables, gone FROM davgate.commit WHERE ns = $1 AND version >= $2 ORDER BY version`,
    namespace.id,
    since,
  );
  if (last?.version !== since || last.mark !== mark || commits.length !== behind) return undefined;
  const changed = new Set(commits.flatMap(({ tables }) => tables));
  const rows = new Map<string, readonly Row[]>();
  for (const table of TABLES)
    if (changed.has(table.name)) rows.set(table.name, await rowsAfter(on, table, namespace.id, since));
  return { namespace, rows, gone: goneIn(commits) };
}

function goneIn(commits: readonly CommitRow[]): ReadonlyMap<string, readonly Key[]> {
  const gone = new Map<string, Key[]>();
  for (const commit of commits)
    for (const [name, keys] of Object.entries(commit.gone ?? {})) {
      const all = gone.get(name) ?? [];
      gone.set(name, all);
      for (const key of keys) all.push(key);
    }
  return gone;
}

async function rowsAfter(on: Queries, table: Table, ns: number, version: number): Promise<readonly Row[]> {
  const text = `SELECT ${columnsOf(table).join(', ')} FROM davgate.${table.name} WHERE ns = $1 AND version > $2`;
  return valuesOf(table, await rowsOf(on, text, ns, version));
}

/** Yields all rows of a namespace in pieces, in a transaction that sees one state of the database. */
export async function* allRows(on: Queries, ns: number): AsyncGenerator<NamespaceChange['rows']> {
  for (const table of TABLES)
    for await (const rows of rowsIn(on, ns, table)) yield new Map([[table.name, rows]]);
}

/** Yields the rows of a table, with values of `further` columns at their ends, in pieces of `count`. */
export async function* rowsIn(
  on: Queries,
  ns: number,
  table: Table,
  further: readonly string[] = [],
  count = PIECE_ROWS,
): AsyncGenerator<readonly Row[]> {
  const columns = [...columnsOf(table), ...further].join(', ');
  await on.query(
    `DECLARE rows NO SCROLL CURSOR FOR SELECT ${columns} FROM davgate.${table.name} WHERE ns = ${ns}`,
  );
  for (;;) {
    const rows = valuesOf(table, await rowsOf(on, `FETCH ${count} FROM rows`), further);
    if (rows.length > 0) yield rows;
    if (rows.length < count) break;
  }
  await on.query('CLOSE rows');
}

/** Rows of a namespace that are loaded at once. */
const PIECE_ROWS = 2000;

function valuesOf(
  table: Table,
  rows: readonly QueryResultRow[],
  further: readonly string[] = [],
): readonly Row[] {
  const names = [...Object.keys(table.columns), ...further];
  return rows.map((row) => names.map((name) => row[name] as Value)); // the columns have only such values
}

/** Returns the mark of the commit that made a version; `undefined` if there is none, or it was long ago. */
export async function markOf(on: Queries, ns: number, version: number): Promise<string | undefined> {
  const row = await findRow<{ mark: string }>(
    on,
    'SELECT mark FROM davgate.commit WHERE ns = $1 AND version = $2',
    ns,
    version,
  );
  return row?.mark;
}

/** Returns the bytes of a small block, even if it is no longer needed since a short while. */
export async function smallBytes(on: Queries, ns: number, hash: Buffer): Promise<Buffer | undefined> {
  const row = await findRow<{ bytes: Buffer }>(
    on,
    `SELECT bytes FROM davgate.block WHERE ns = $1 AND hash = $2 AND bytes IS NOT NULL
     UNION ALL SELECT bytes FROM davgate.condemned_bytes WHERE ns = $1 AND hash = $2 LIMIT 1`,
    ns,
    hash,
  );
  return row?.bytes;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Time between two looks at the history of a namespace that no process uses, in ms. */
const TIDIED_EVERY_MS = 30 * DAY_MS;

/**
 * Maximum number of such namespaces in one round, because each has to be loaded. At most `UNUSED_MAX` of `Namespaces`: their
 * copies are looked at again after the round.
 */
const TIDIED_AT_ONCE = 100;

/**
 * Returns the namespaces in which removals, moves or expired sessions have to be cleared away, and some whose history may
 * have ended since it was last looked through.
 */
export async function unfinished(on: Queries, nowMs: number): Promise<readonly number[]> {
  const rows = await rowsOf<{ ns: number }>(
    on,
    `SELECT ns FROM davgate.removal UNION SELECT ns FROM davgate.staging UNION SELECT ns FROM davgate.doomed
     UNION SELECT ns FROM davgate.session WHERE started_ms <= $1
     UNION (SELECT id FROM davgate.namespace WHERE tidied_tick < $2 AND tidied_tick < tick + $3
       ORDER BY tidied_tick LIMIT ${TIDIED_AT_ONCE})`,
    nowMs - SESSION_LIFE_MS,
    tickAt(nowMs - TIDIED_EVERY_MS),
    tickAt(HISTORY_LIFE_MS + TIDIED_EVERY_MS),
  );
  return rows.map(({ ns }) => ns);
}

/** Notes that the history of a namespace has been looked through. */
export async function noteTidied(on: Queries, ns: number, nowMs: number): Promise<void> {
  await on.query('UPDATE davgate.namespace SET tidied_tick = $2 WHERE id = $1 AND tidied_tick < $3', [
    ns,
    tickAt(nowMs),
    tickAt(nowMs - DAY_MS),
  ]);
}
