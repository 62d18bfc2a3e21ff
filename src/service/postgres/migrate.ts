import type { Pool } from 'pg';
import { databaseName } from './connect.ts';
import { openingFailure, PostgresError } from './errors.ts';
import { findRow, type Queries } from './queries.ts';
import { inTransaction } from './transaction.ts';

/** The key of the lock under which processes change the tables, any number that others are unlikely to use. */
export const LOCK = 0x64_61_76_67;

const VERSIONS = `
  CREATE TABLE davgate.schema (
    part text COLLATE "C" PRIMARY KEY,
    version integer NOT NULL
  )`;

/**
 * Brings the tables of one part of davgate, in the schema `davgate`, to the last of `steps`, all in one transaction.
 * Processes that start at the same time do so one after the other. A released step is never edited: a change of the
 * tables is a new step at the end. Throws `PostgresError`.
 */
export async function migrate(pool: Pool, part: string, steps: readonly string[]): Promise<void> {
  try {
    await expectNoCopy(pool, databaseName(pool));
    // Tables that are up to date need no lock, and no right to create any.
    if ((await versionOf(pool, part)) !== steps.length)
      await inTransaction(pool, (on) => takeSteps(on, databaseName(pool), part, steps));
  } catch (error) {
    throw openingFailure(error, databaseName(pool));
  }
}

async function takeSteps(on: Queries, name: string, part: string, steps: readonly string[]): Promise<void> {
  await on.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
  await createVersions(on);
  const version = await versionOf(on, part);
  if (version > steps.length)
    throw new PostgresError(
      'newer',
      `${name} was written by a newer davgate (format ${version} of its ${part}); start that version instead`,
    );
  for (const step of steps.slice(version)) await on.query(step);
  await on.query(
    `INSERT INTO davgate.schema (part, version) VALUES ($1, $2)
     ON CONFLICT (part) DO UPDATE SET version = excluded.version`,
    [part, steps.length],
  );
}

/** The part of davgate that a database has while a service is being copied into it. */
export const COPY_PART = 'unfinished copy';

/** Throws `PostgresError` for a database into which a service is being copied. A copy begins while it has the lock `LOCK`. */
export async function expectNoCopy(on: Queries, name: string): Promise<void> {
  if ((await versionOf(on, COPY_PART)) > 0)
    throw new PostgresError(
      'unusable',
      `${name} has an unfinished copy of a service: end it with the davgate service copy that began it, or drop the schema davgate`,
    );
}

/** Creates the schema and the table of versions. An operator who gives few rights has made the schema. */
async function createVersions(on: Queries): Promise<void> {
  const { schema, versions } = await existing(on);
  if (!schema) await on.query('CREATE SCHEMA davgate');
  if (!versions) await on.query(VERSIONS);
}

/** Returns how many steps a part has taken. */
export async function versionOf(on: Queries, part: string): Promise<number> {
  const { versions } = await existing(on);
  if (!versions) return 0;
  const row = await findRow<{ version: number }>(
    on,
    'SELECT version FROM davgate.schema WHERE part = $1',
    part,
  );
  return row?.version ?? 0;
}

/**
 * Returns what exists already, from the rows of the catalog: functions like `to_regclass` remember in a connection what
 * did not exist before the lock.
 */
async function existing(on: Queries): Promise<{ readonly schema: boolean; readonly versions: boolean }> {
  const row = await findRow<{ schema: boolean; versions: boolean }>(
    on,
    `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'davgate') AS schema,
       EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'davgate' AND tablename = 'schema') AS versions`,
  );
  return row ?? { schema: false, versions: false };
}
