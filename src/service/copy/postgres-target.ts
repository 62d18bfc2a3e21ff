import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool, PoolClient } from 'pg';
import { databaseName } from '../postgres/connect.ts';
import { sqlStateOf } from '../postgres/errors.ts';
import { COPY_PART, LOCK, migrate, versionOf } from '../postgres/migrate.ts';
import { findRow, type Queries } from '../postgres/queries.ts';
import { expectReliable } from '../postgres/requirements.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { placesOf } from '../storage/postgres/postgres-storage.ts';
import { type CopyMark, parsedMark } from '../storage/unfinished-copy.ts';
import { CopiedBlocks, newCopyId } from './copied-blocks.ts';
import { CopyError, NotEmptyError } from './copy-error.ts';
import {
  expectCurrent,
  expectUnused,
  explaining,
  LEAVING_MS,
  openCopyPool,
  PARTS,
  postgresRows,
} from './postgres-side.ts';
import { finishTables, PostgresTables } from './postgres-tables.ts';
import type { CopyTarget, ServiceKeys, ServicePlace } from './sides.ts';

type Place = Extract<ServicePlace, { metadata: string }>;

/** The setting with the mark of an unfinished copy. */
const MARK = 'copy';

/**
 * Opens a database without a service, or with an unfinished copy of the one with this tag. Throws `CopyError` for any other
 * one, `PostgresError`, `DataDirectoryError` and `BucketError`.
 */
export async function openPostgresTarget({ metadata, blocks }: Place, tag: string): Promise<CopyTarget> {
  const pool = openCopyPool(metadata);
  try {
    return await explaining(pool, () => openTarget(pool, blocks, tag));
  } catch (failure) {
    await pool.end();
    throw failure;
  }
}

async function openTarget(pool: Pool, blocks: Place['blocks'], tag: string): Promise<CopyTarget> {
  const name = databaseName(pool);
  await expectReliable(pool);
  await expectUnused(pool);
  const locked = await alone(pool);
  const scratchDirectory = await mkdtemp(join(tmpdir(), 'davgate-copy-'));
  const closing: (() => Promise<void>)[] = [];
  const release = async () => {
    for (const close of closing) await close();
    locked.release(true);
    await rm(scratchDirectory, { recursive: true, force: true });
  };
  try {
    const { copyId } = await markOf(pool, tag);
    const { places, blocks: place } = await placesOf({ pool, scratchDirectory, blocks }, tag);
    closing.push(() => place.close());
    const kept = new CopiedBlocks(place, places.incoming, copyId);
    await kept.find();
    return {
      name,
      has: (block) => kept.has(block),
      keep: (block, bytes) => kept.keep(block, bytes),
      sync: () => kept.sync(),
      async fill(keys, work) {
        const tables = new PostgresTables(locked, (hash) => kept.nameOf(hash) ?? '');
        await locked.query('BEGIN');
        await locked.query('DELETE FROM davgate.setting WHERE name = $1', [MARK]);
        await locked.query('DELETE FROM davgate.schema WHERE part = $1', [COPY_PART]);
        await addSettings(locked, keys);
        const rows = postgresRows(locked);
        await work({
          storage: rows,
          directory: rows,
          putNamespace: (row) => tables.putNamespace(row),
          put: (table, namespace, some) => tables.put(table, namespace, some),
          putInDirectory: (table, some) => tables.putInDirectory(table, some),
        });
        await finishTables(locked);
        await expectUnused(pool);
        await locked.query('COMMIT');
      },
      async close() {
        await release();
        await pool.end();
      },
    };
  } catch (failure) {
    await release();
    throw failure;
  }
}

/** Tells the lock of copies from others of davgate. */
const COPY_LOCK = 1;

/** SQLSTATE of a lock that was waited for in vain. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Returns a connection that has the lock of the copies into this database. */
async function alone(pool: Pool): Promise<PoolClient> {
  const client = await pool.connect();
  try {
    await client.query(`SET lock_timeout = ${LEAVING_MS}`);
    await client.query('SELECT pg_advisory_lock($1, $2)', [LOCK, COPY_LOCK]);
    await client.query('RESET lock_timeout');
    return client;
  } catch (failure) {
    client.release(true);
    if (sqlStateOf(failure) !== LOCK_NOT_AVAILABLE) throw failure;
    throw new CopyError(
      `${databaseName(pool)} is the target of a copy that runs: wait for its end, or stop it`,
    );
  }
}

/** Returns the mark of a database for a copy; makes the tables and the mark in a new one. Throws `CopyError`. */
async function markOf(pool: Pool, tag: string): Promise<CopyMark> {
  const name = databaseName(pool);
  if ((await versionOf(pool, COPY_PART)) > 0) {
    await expectCurrent(
      pool,
      'has an unfinished copy that another version of davgate began: end it with that one',
    );
    const row = await findRow<{ value: Buffer }>(
      pool,
      'SELECT value FROM davgate.setting WHERE name = $1',
      MARK,
    );
    const found = parsedMark(row?.value.toString() ?? '');
    if (found.tag === tag) return found;
    throw new CopyError(
      `${name} has an unfinished copy of another service: end that one, or name an empty database`,
    );
  }
  for (const { part, steps } of PARTS) await migrate(pool, part, steps);
  const mark = { tag, copyId: newCopyId() };
  await inTransaction(pool, async (on) => {
    await on.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    await expectEmpty(on, name);
    await on.query('INSERT INTO davgate.schema (part, version) VALUES ($1, 1)', [COPY_PART]);
    await on.query('INSERT INTO davgate.setting (name, value) VALUES ($1, $2)', [
      MARK,
      Buffer.from(JSON.stringify(mark)),
    ]);
  });
  return mark;
}

/** A service makes its settings and an account when it first starts. */
async function expectEmpty(on: Queries, name: string): Promise<void> {
  const row = await findRow(
    on,
    'SELECT 1 AS one FROM davgate.setting UNION ALL SELECT 1 FROM davgate.accounts LIMIT 1',
  );
  if (row)
    throw new NotEmptyError(
      `${name} has a service already: name an empty database, or drop the schema davgate if nothing in it is needed`,
    );
}

async function addSettings(on: PoolClient, { tag, cursorKey }: ServiceKeys): Promise<void> {
  for (const [name, value] of [
    ['tag', Buffer.from(tag, 'hex')],
    ['cursor-key', cursorKey],
  ] as const)
    await on.query('INSERT INTO davgate.setting (name, value) VALUES ($1, $2)', [name, value]);
}
