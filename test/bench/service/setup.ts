import { mkdirSync, mkdtempSync, readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Client as Database } from 'pg';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { ServiceProcess } from '../../support/service-process.ts';
import { processorSecondsOf } from '../peers.ts';
import { Client, secondsOf } from './client.ts';
import type { Kind } from './options.ts';

/** What one measured piece of work took. Processor times are in ms. */
export interface Measured {
  readonly seconds: number;
  /** Files, entries or bytes; for a time, 1; for a size, that size. */
  readonly amount: number;
  readonly clientMs: number;
  /** Of all processes of the service. */
  readonly serviceMs: number;
  readonly postgresMs: number;
  /** Commits to namespaces in PostgreSQL. */
  readonly commits: number;
}

/** Sizes of the metadata, in bytes: where it is stored, and with PostgreSQL in the copies of the first process. */
export interface MetadataBytes {
  readonly stored: number;
  readonly copied?: number;
}

/** A service that is measured: its processes and, with PostgreSQL, its database. */
export interface Setup {
  readonly kind: Kind;
  /** The first process. */
  readonly service: ServiceProcess;
  /** A client of the default account at the first process. */
  client(): Client;
  /**
   * Adds accounts and returns a client of each. With PostgreSQL it starts the second process first, and half of the clients
   * call that one.
   */
  accounts(count: number): Promise<readonly Client[]>;
  /** Stops and starts the first process: what it had in its memory and in its copies is gone. */
  restart(): Promise<void>;
  measure(amount: number, work: () => Promise<unknown>): Promise<Measured>;
  /** Restarts the first process, and returns what metadata takes on the disk. */
  metadataBytes(): Promise<MetadataBytes>;
  /** Returns the duration of a statement that does nothing, in ms; `undefined` without PostgreSQL. */
  roundTripMs(): Promise<number | undefined>;
  close(): Promise<void>;
}

const SERVER = new URL('../../src/service/server.js', import.meta.url).href;

/** PostgreSQL as its package sets it up, where the tests' settings differ from that. */
const AS_INSTALLED = ['autovacuum=on', 'shared_buffers=128MB', 'max_connections=100'];

/** Starts a service with its data in `home`. */
export async function startSetup(kind: Kind, home: string): Promise<Setup> {
  if (kind === 'sqlite') {
    const service = new ServiceProcess(SERVER, join(home, 'sqlite'));
    await service.start();
    return setupOf(kind, [service], undefined);
  }
  const postgres = await startPostgres(AS_INSTALLED, mkdtempSync(`${home}-postgres-`));
  const url = await postgres.newDatabase();
  const folder = join(home, 'blocks');
  mkdirSync(folder);
  const services = ['node-1', 'node-2'].map(
    (name) => new ServiceProcess(SERVER, join(home, name), { metadata: url, blocks: { folder } }),
  );
  const database = new Database({ connectionString: url });
  try {
    await services[0]?.start();
    await database.connect();
  } catch (failure) {
    await postgres.close();
    throw failure;
  }
  return setupOf(kind, services, { postgres, database });
}

interface Metadata {
  readonly postgres: TestPostgres;
  readonly database: Database;
}

function setupOf(kind: Kind, services: readonly ServiceProcess[], metadata: Metadata | undefined): Setup {
  const [service] = services;
  if (!service) throw new Error('a service has at least one process');
  const running = () => services.filter(({ isRunning }) => isRunning);

  async function usage(): Promise<Omit<Measured, 'seconds' | 'amount'>> {
    const { user, system } = process.cpuUsage();
    let serviceMs = 0;
    for (const one of running()) serviceMs += (await one.usage()).cpuMs;
    return {
      clientMs: (user + system) / 1000,
      serviceMs,
      postgresMs: metadata ? processorSecondsOf(metadata.postgres.pid) * 1000 : 0,
      commits: metadata ? await commitsIn(metadata.database) : 0,
    };
  }

  return {
    kind,
    service,
    client: () => new Client(service.url, service.token),
    async accounts(count) {
      for (const one of services) if (!one.isRunning) await one.start();
      const tokens = await service.addAccounts(count);
      return tokens.map((token, index) => new Client(services[index % services.length]?.url ?? '', token));
    },
    restart: () => service.restart('SIGTERM'),
    async measure(amount, work) {
      const before = await usage();
      const seconds = await secondsOf(work);
      const after = await usage();
      return {
        seconds,
        amount,
        clientMs: after.clientMs - before.clientMs,
        serviceMs: after.serviceMs - before.serviceMs,
        postgresMs: after.postgresMs - before.postgresMs,
        commits: after.commits - before.commits,
      };
    },
    async metadataBytes() {
      await service.restart('SIGTERM');
      const client = new Client(service.url, service.token);
      await client.rpc('files/list_folder', { path: '', limit: 1 });
      const local = localBytes(service.dataDirectory);
      return metadata ? { stored: await bytesIn(metadata.database), copied: local } : { stored: local };
    },
    async roundTripMs() {
      if (!metadata) return undefined;
      const count = 200;
      const ask = async () => {
        for (let number = 0; number < count; number++) await metadata.database.query('SELECT 1');
      };
      await ask();
      return ((await secondsOf(ask)) * 1000) / count;
    },
    async close() {
      for (const one of running()) await one.end('SIGTERM');
      await metadata?.database.end();
      await metadata?.postgres.close();
    },
  };
}

/** Returns the size of a data directory without its blocks and the logs of its databases, in bytes. */
function localBytes(directory: string): number {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  return paths
    .filter((path) => !relative(directory, path).startsWith('blocks') && !path.endsWith('-wal'))
    .reduce((sum, path) => sum + statSync(path).size, 0);
}

/** Returns the size of all tables with their indexes, in bytes, without the room of removed rows. */
async function bytesIn(database: Database): Promise<number> {
  await database.query('VACUUM FULL');
  const { rows } = await database.query<{ bytes: string }>(
    `SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class
     WHERE relkind = 'r' AND relnamespace = 'davgate'::regnamespace`,
  );
  return Number(rows[0]?.bytes);
}

async function commitsIn(database: Database): Promise<number> {
  const { rows } = await database.query<{ commits: string }>(
    'SELECT coalesce(sum(version), 0) AS commits FROM davgate.namespace',
  );
  return Number(rows[0]?.commits);
}
