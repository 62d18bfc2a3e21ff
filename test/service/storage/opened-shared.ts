import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool, PoolClient } from 'pg';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { openPool } from '../../../src/service/postgres/connect.ts';
import {
  openPostgresStorage,
  type PostgresStorageOptions,
} from '../../../src/service/storage/postgres/postgres-storage.ts';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { makeFolder } from '../../../src/util/make-folder.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { HOME, temporaryFolder } from './opened.ts';

/** A database and a folder of blocks, which several storages share. */
export interface SharedPlace {
  readonly url: string;
  readonly folder: string;
}

/** A storage of such a place, and its connections. */
export interface SharedStorage {
  readonly storage: Storage;
  readonly pool: Pool;
}

/** Starts a PostgreSQL for the tests of a file. */
export function postgresTests(): {
  readonly newPlace: () => Promise<SharedPlace>;
  /** Opens two storages of a new place. */
  readonly two: () => Promise<{
    readonly one: Storage;
    readonly other: Storage;
    readonly place: SharedPlace;
  }>;
  readonly server: () => TestPostgres;
} {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.close());
  async function newPlace(): Promise<SharedPlace> {
    const folder = join(await temporaryFolder(), 'blocks');
    makeFolder(folder);
    return { url: await postgres.newDatabase(), folder };
  }
  return {
    server: () => postgres,
    newPlace,
    async two() {
      const place = await newPlace();
      const { storage: one } = await openedShared(place);
      const { storage: other } = await openedShared(place);
      return { one, other, place };
    },
  };
}

/** Opens a storage of a place with one empty home, closed after the test. `usePool` may replace its connections. */
export async function openedShared(
  { url, folder }: SharedPlace,
  options: Partial<PostgresStorageOptions> = {},
  usePool: (pool: Pool) => Pool = (pool) => pool,
): Promise<SharedStorage> {
  const pool = openPool(url, silentLog);
  const storage = await openPostgresStorage({
    pool: usePool(pool),
    scratchDirectory: await temporaryFolder(),
    blocks: { folder },
    clock: systemClock,
    log: silentLog,
    commitWaitMs: Number.POSITIVE_INFINITY,
    ...options,
  });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= storage.close().then(() => pool.end());
    return closing;
  };
  onTestFinished(close);
  await storage.createNamespace(HOME, 2 ** 40);
  return { storage: { ...storage, close }, pool };
}

/** Runs a round of housekeeping with the part that one process does for all. */
export async function tidyAll(storage: Storage): Promise<void> {
  await storage.tidy();
  await storage.tidyShared();
}

/** Returns the names of the blocks of the only service in a place. */
export async function blocksIn({ folder }: SharedPlace): Promise<readonly string[]> {
  const [tag = ''] = await readdir(folder);
  return await readdir(join(folder, tag, 'blocks'));
}

/** Returns a pool whose connections run `instead` in place of a statement for which it returns something. */
export function withStatements(
  pool: Pool,
  instead: (client: PoolClient, text: string) => Promise<unknown> | undefined,
): Pool {
  const connect = async () => {
    const client = await pool.connect();
    return new Proxy(client, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value;
        return (text: string, values?: unknown[]) => instead(target, text) ?? target.query(text, values);
      },
    });
  };
  return new Proxy(pool, {
    get(target, name) {
      if (name === 'connect') return connect;
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
