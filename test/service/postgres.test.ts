import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { databaseName, openPool } from '../../src/service/postgres/connect.ts';
import { migrate } from '../../src/service/postgres/migrate.ts';
import { changesOf, deleteUnlocked, findRow, rowsOf } from '../../src/service/postgres/queries.ts';
import { expectReliable } from '../../src/service/postgres/requirements.ts';
import { inTransaction } from '../../src/service/postgres/transaction.ts';
import { openStores } from '../../src/service/stores.ts';
import { systemClock } from '../../src/util/clock.ts';
import { type Log, type LogFields, silentLog } from '../../src/util/log.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const STEPS = ['CREATE SCHEMA other', 'CREATE TABLE other.rows (id integer PRIMARY KEY, value integer)'];

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

function poolAt(url: string, log: Log = silentLog): Pool {
  const pool = openPool(url, log);
  onTestFinished(() => pool.end());
  return pool;
}

/** Opens a pool at a new database with the table `other.rows`, which has the rows 1 and 2 with the value 0. */
async function poolWithRows(log: Log = silentLog): Promise<Pool> {
  const pool = poolAt(await postgres.newDatabase(), log);
  await migrate(pool, 'test', [...STEPS, 'INSERT INTO other.rows VALUES (1, 0), (2, 0)']);
  return pool;
}

/** Returns the process id of the server's end of a connection. */
async function processOf(on: Pick<Pool, 'query'>): Promise<number> {
  const { rows } = await on.query<{ id: number }>('SELECT pg_backend_pid() AS id');
  return rows[0]?.id ?? 0;
}

async function valuesIn(pool: Pool): Promise<readonly number[]> {
  const rows = await rowsOf<{ value: number }>(pool, 'SELECT value FROM other.rows ORDER BY id');
  return rows.map(({ value }) => value);
}

const add = (id: number, amount: number) =>
  [`UPDATE other.rows SET value = value + $2 WHERE id = $1`, [id, amount]] as const;

/** Fails with the error that `run` rejects with. */
async function failureOf(run: Promise<unknown>): Promise<Error> {
  const failure = await run.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure instanceof Error) return failure;
  throw new Error('it has not failed');
}

describe('the connections to PostgreSQL', () => {
  test('bigint values and counts are numbers', async () => {
    const pool = poolAt(await postgres.newDatabase());
    const row = await findRow(pool, 'SELECT 2::bigint ^ 0 * 9007199254740991::bigint AS a, count(*) AS n');
    expect(row).toEqual({ a: Number.MAX_SAFE_INTEGER, n: 1 });
  });

  test('a connection that the server ends while it is idle is replaced and logged without the password', async () => {
    const events: (LogFields | undefined)[] = [];
    const pool = poolAt(await postgres.newDatabase(), {
      ...silentLog,
      warn: (_event, fields) => events.push(fields),
    });
    await postgres.administer(`SELECT pg_terminate_backend(${await processOf(pool)})`);
    await eventually(() => expect(events).toHaveLength(1));
    expect(events[0]).toEqual({ name: databaseName(pool), error: expect.stringContaining('terminat') });
    expect(await processOf(pool)).toBeGreaterThan(0);
  });

  test('a call whose connection the server ends fails, and the next call works', async () => {
    const pool = poolAt(await postgres.newDatabase());
    const failure = await failureOf(pool.query('SELECT pg_terminate_backend(pg_backend_pid())'));
    expect(failure.message).toContain('terminat');
    expect(await processOf(pool)).toBeGreaterThan(0);
  });

  test('a wrong password, a missing database and a server that is away each have an error without the password', async () => {
    const url = await postgres.newDatabase();
    const wrong = new URL(url);
    wrong.password = 'not-the-password';
    const away = new URL(url);
    away.port = String(await freePort());
    for (const [bad, reason] of [
      [wrong.href, /refuses the user or the password: check both/],
      [`${url}_missing`, /does not exist: create it with createdb/],
      [away.href, /cannot be reached \(.*ECONNREFUSED.*\): check its address/],
    ] as const) {
      const pool = poolAt(bad);
      const failure = await failureOf(migrate(pool, 'test', STEPS));
      expect(failure).toMatchObject({ name: 'PostgresError', reason: 'unusable' });
      expect(failure.message).toMatch(reason);
      expect(failure.message).toContain(databaseName(pool));
      expect(`${failure.stack} ${String(failure.cause)}`).not.toContain(new URL(bad).password);
    }
  });

  test('the name of a database has its host and port, or its socket, and no password', async () => {
    const nameOf = (url: string) => databaseName(poolAt(url));
    expect(nameOf('postgres://ann:secret@db.example.org/files')).toBe(
      'the PostgreSQL database files at db.example.org:5432',
    );
    expect(nameOf('postgresql://ann:secret@[::1]:5433/files')).toBe(
      'the PostgreSQL database files at [::1]:5433',
    );
    expect(nameOf('postgres://ann:secret@/files?host=/run/postgresql')).toBe(
      'the PostgreSQL database files at /run/postgresql',
    );
  });

  test('a text that is no address is refused without showing it', () => {
    for (const bad of [
      'ann:secret@host/files',
      'http://ann:secret@host/files',
      'postgres://ann:secret@host:port/x',
    ])
      expect(() => openPool(bad, silentLog)).toThrow(
        /^not the address of a PostgreSQL database: write postgres:/,
      );
  });

  test('a pool that is printed does not show the password', async () => {
    const pool = poolAt('postgres://ann:secret@db.example.org/files');
    expect(JSON.stringify(pool.options)).not.toContain('secret');
  });
});

describe('a transaction in PostgreSQL', () => {
  test('a transaction whose work throws changes nothing, and its connection is used again', async () => {
    const pool = await poolWithRows();
    const before = await processOf(pool);
    const refusal = new Error('refused');
    const work = inTransaction(pool, async (on) => {
      await on.query(...add(1, 5));
      throw refusal;
    });
    await expect(work).rejects.toBe(refusal);
    expect(await valuesIn(pool)).toEqual([0, 0]);
    expect(await processOf(pool)).toBe(before);
  });

  test('a deadlock of two transactions ends with the changes of both', async () => {
    const pool = await poolWithRows();
    let attempts = 0;
    let firsts = 0;
    const both = (first: number, second: number) =>
      inTransaction(pool, async (on) => {
        attempts += 1;
        await on.query(...add(first, 1));
        firsts += 1;
        await eventually(() => expect(firsts).toBeGreaterThan(1));
        await on.query(...add(second, 1));
      });
    await Promise.all([both(1, 2), both(2, 1)]);
    expect(await valuesIn(pool)).toEqual([2, 2]);
    // More than one repetition when the repeated one takes the row before the other has woken up.
    expect(attempts).toBeGreaterThanOrEqual(3);
  });

  test('a transaction that cannot be serialized is repeated five times at most', async () => {
    const pool = await poolWithRows();
    let attempts = 0;
    const work = inTransaction(pool, async (on) => {
      attempts += 1;
      await on.query(`DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$`);
    });
    expect((await failureOf(work)).message).toBe('conflict');
    expect(attempts).toBe(5);
  });

  test('a transaction with an ignored error fails instead of being rolled back silently', async () => {
    const pool = await poolWithRows();
    const work = inTransaction(pool, async (on) => {
      await on.query(...add(1, 5));
      await on.query('SELECT 1 / 0').catch(() => undefined);
    });
    expect((await failureOf(work)).message).toContain('its error was ignored');
    expect(await valuesIn(pool)).toEqual([0, 0]);
  });

  test('a transaction whose connection the server ends fails and changes nothing, and the next one works', async () => {
    const pool = await poolWithRows();
    const work = inTransaction(pool, async (on) => {
      await on.query(...add(1, 5));
      const row = await findRow<{ id: number }>(on, 'SELECT pg_backend_pid() AS id');
      await postgres.administer(`SELECT pg_terminate_backend(${row?.id})`);
      await on.query(...add(1, 5));
    });
    await expect(work).rejects.toThrow(/terminat|not queryable/);
    await inTransaction(pool, (on) => on.query(...add(2, 1)));
    expect(await valuesIn(pool)).toEqual([0, 1]);
  });

  test('deleteUnlocked deletes up to a limit, and leaves rows that another transaction has locked', async () => {
    const pool = await poolWithRows();
    await pool.query('CREATE TABLE davgate.rows AS SELECT n AS id FROM generate_series(1, 5) AS n');
    const rows = { table: 'rows', key: 'id', condition: 'id > $1', values: [1] };
    await inTransaction(pool, async (on) => {
      await on.query('SELECT FROM davgate.rows WHERE id = 2 FOR UPDATE');
      expect(await deleteUnlocked(pool, rows, 2)).toBe(2);
      expect(await deleteUnlocked(pool, rows, 2)).toBe(1);
    });
    expect(await deleteUnlocked(pool, rows)).toBe(1);
    expect(await changesOf(pool, 'DELETE FROM davgate.rows')).toBe(1);
  });
});

describe('the migrations of PostgreSQL', () => {
  test('processes that start at the same time take each step once', async () => {
    const url = await postgres.newDatabase();
    const pools = Array.from({ length: 6 }, () => poolAt(url));
    const parts = ['directory', 'storage'];
    const step = (part: string) => [`CREATE TABLE davgate.${part}_rows (id integer)`];
    await Promise.all(pools.flatMap((pool) => parts.map((part) => migrate(pool, part, step(part)))));
    const [pool] = pools;
    if (!pool) throw new Error('there is no pool');
    expect(await rowsOf(pool, 'SELECT * FROM davgate.schema ORDER BY part')).toEqual(
      parts.map((part) => ({ part, version: 1 })),
    );
  });

  test('a later start takes the new steps alone', async () => {
    const pool = await poolWithRows();
    const steps = [...STEPS, 'SELECT 1', 'UPDATE other.rows SET value = 7'];
    await migrate(pool, 'test', steps);
    await migrate(pool, 'test', steps);
    expect(await valuesIn(pool)).toEqual([7, 7]);
  });

  test('a step that fails leaves the database as it was', async () => {
    const pool = poolAt(await postgres.newDatabase());
    const failure = await failureOf(migrate(pool, 'test', [...STEPS, 'SELECT 1 / 0']));
    expect(failure.message).toBe('division by zero');
    const row = await findRow(
      pool,
      `SELECT count(*) AS n FROM pg_namespace WHERE nspname IN ('davgate', 'other')`,
    );
    expect(row).toEqual({ n: 0 });
  });

  test('tables of a newer davgate are refused and stay as they are', async () => {
    const pool = await poolWithRows();
    const failure = await failureOf(migrate(pool, 'test', STEPS));
    expect(failure).toMatchObject({ name: 'PostgresError', reason: 'newer' });
    expect(failure.message).toBe(
      `${databaseName(pool)} was written by a newer davgate (format 3 of its test); start that version instead`,
    );
    expect(await valuesIn(pool)).toEqual([0, 0]);
  });

  test('a user who may not create a schema uses one that the administrator has made, and is told if there is none', async () => {
    const url = await postgres.newDatabase();
    const pool = poolAt(url);
    await pool.query('CREATE SCHEMA davgate');
    const name = new URL(url).pathname.slice(1);
    await postgres.administer(`ALTER DATABASE ${name} OWNER TO postgres`);
    await migrate(pool, 'test', ['CREATE TABLE davgate.rows (id integer)']);
    await pool.query('DROP SCHEMA davgate CASCADE');
    const failure = await failureOf(migrate(pool, 'test', STEPS));
    expect(failure.message).toBe(
      `${databaseName(pool)} does not allow its user to create tables: grant CREATE on the database`,
    );
  });
});

describe('what a database needs', () => {
  /** Opens a pool whose user has other settings. */
  async function poolOf(setting: string): Promise<Pool> {
    const url = await postgres.newDatabase();
    const { pathname } = new URL(url);
    await postgres.administer(`ALTER DATABASE ${pathname.slice(1)} SET ${setting}`);
    return poolAt(url);
  }

  test('a database that keeps what it acknowledges is accepted', async () => {
    await expectReliable(poolAt(await postgres.newDatabase()));
  });

  test.each(['fsync', 'full_page_writes'])('a server with %s off is refused', async (setting) => {
    const careless = await startPostgres([`${setting}=off`]);
    onTestFinished(() => careless.close());
    const { message } = await failureOf(expectReliable(poolAt(await careless.newDatabase())));
    expect(message).toMatch(
      new RegExp(`^the PostgreSQL database \\w+ at .* \\(${setting} = off\\): set ${setting} = on`),
    );
    expect(message).not.toContain('correct-horse');
  });

  test('a database that answers before a commit is on disk is refused', async () => {
    const { message } = await failureOf(expectReliable(await poolOf('synchronous_commit = off')));
    expect(message).toMatch(
      /loses acknowledged changes in a crash \(synchronous_commit = off\): .* ALTER ROLE$/,
    );
  });

  test('a database that cannot store every name is refused', async () => {
    await postgres.administer(
      `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C' OWNER davgate`,
    );
    const url = new URL(await postgres.newDatabase());
    url.pathname = '/latin';
    const { message } = await failureOf(expectReliable(poolAt(url.href)));
    expect(message).toMatch(/cannot store every name \(its encoding is LATIN1\): create it with createdb/);
  });

  test.each([
    [-45_000, 'behind'],
    [45_000, 'ahead of'],
  ])('a machine whose clock differs by %i ms is refused', async (ms, side) => {
    const pool = poolAt(await postgres.newDatabase());
    const clock = { ...systemClock, now: () => systemClock.now() + ms };
    const { message } = await failureOf(expectReliable(pool, clock));
    expect(message).toMatch(
      new RegExp(
        `^the clock of this machine is 4\\d s ${side} that of the PostgreSQL database .*: let NTP set both$`,
      ),
    );
  });

  test('a clock that differs by some seconds is accepted', async () => {
    const clock = { ...systemClock, now: () => systemClock.now() - 20_000 };
    await expectReliable(poolAt(await postgres.newDatabase()), clock);
  });

  test('a service refuses a database that is not reliable', async () => {
    const url = await postgres.newDatabase();
    await postgres.administer(
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = off`,
    );
    const folder = await mkdtemp(join(tmpdir(), 'davgate-unreliable-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const stores = openStores({
      dataDirectory: join(folder, 'data'),
      metadata: url,
      blocks: { folder },
      clock: systemClock,
      log: silentLog,
    });
    expect((await failureOf(stores)).message).toContain('synchronous_commit = off');
  });
});
