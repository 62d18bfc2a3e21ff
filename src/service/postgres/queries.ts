import type { QueryResult, QueryResultRow } from 'pg';

/** A pool, each of whose statements is a transaction, or the connection of one transaction. */
export interface Queries {
  query<Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>>;
}

/** Returns the rows of a statement. */
export async function rowsOf<Row extends QueryResultRow>(
  on: Queries,
  text: string,
  ...values: readonly unknown[]
): Promise<readonly Row[]> {
  return (await on.query<Row>(text, values)).rows;
}

/**
 * Returns the row that a SELECT finds, if there is one. No row has a text with U+0000, which clients may send in a name
 * or a token, and for which PostgreSQL has an error.
 */
export async function findRow<Row extends QueryResultRow>(
  on: Queries,
  text: string,
  ...values: readonly unknown[]
): Promise<Row | undefined> {
  if (values.some((value) => typeof value === 'string' && value.includes('\0'))) return undefined;
  return (await on.query<Row>(text, values)).rows[0];
}

/** Returns the time by the clock of the database, in ms. */
export async function databaseTime(on: Queries): Promise<number> {
  const row = await findRow<{ nowMs: number }>(
    on,
    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "nowMs"`,
  );
  if (!row) throw new Error('the database has no clock');
  return row.nowMs;
}

/** Runs a statement. Returns how many rows it has added, changed or deleted. */
export async function changesOf(on: Queries, text: string, ...values: readonly unknown[]): Promise<number> {
  return (await on.query(text, values)).rowCount ?? 0;
}

interface Selection {
  /** A table of the schema `davgate`. */
  readonly table: string;
  /** Its primary key; `ctid` for one of several columns. */
  readonly key: string;
  /** SQL with the parameters `values`. */
  readonly condition: string;
  readonly values: readonly unknown[];
}

/**
 * Deletes rows, up to `limit` of them if given. Returns how many. Skips rows that another transaction has locked: two
 * processes that delete the same rows neither wait for each other nor end in a deadlock. A row that was changed since
 * the statement began is compared again.
 */
export function deleteUnlocked(
  on: Queries,
  { table, key, condition, values }: Selection,
  limit: number | null = null,
): Promise<number> {
  return changesOf(
    on,
    `WITH chosen AS MATERIALIZED (
       SELECT ${key} FROM davgate.${table} WHERE ${condition}
       LIMIT $${values.length + 1} FOR UPDATE SKIP LOCKED)
     DELETE FROM davgate.${table} USING chosen WHERE ${table}.${key} = chosen.${key}`,
    ...values,
    limit,
  );
}
