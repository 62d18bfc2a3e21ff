import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { chown, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { freePort } from './free-port.ts';
import { end, launch } from './launched.ts';
import { serverFolder } from './server-folder.ts';

export interface TestPostgres {
  /** URL of the administrator. */
  readonly administratorUrl: string;
  /** Creates an empty database. Returns its URL, with the name and password of a user without other rights. */
  newDatabase(): Promise<string>;
  /** Runs a statement as the administrator. */
  administer(statement: string): Promise<void>;
  /** Stops PostgreSQL and removes its data. */
  close(): Promise<void>;
}

/** Settings that a test may override. Shared memory is in the data's folder, so that a killed server leaves none. */
const DEFAULTS = [
  'fsync=off',
  'autovacuum=off',
  'max_connections=200',
  'shared_buffers=32MB',
  'dynamic_shared_memory_type=mmap',
];

/** Debian's folder with one for each version of PostgreSQL. */
const VERSIONS = '/usr/lib/postgresql';

const ADMINISTRATOR = 'postgres';

/** The user of the tests' URLs. */
const USER = 'davgate';

/** The password of both. */
const PASSWORD = 'correct-horse';

/**
 * Starts a real PostgreSQL on a free loopback port; this takes seconds, so that the tests of a file share one. `settings`
 * are like `fsync=on`: by default nothing survives a power cut. Its default collation is that of a language, in which a
 * comparison that forgets to ask for another order shows.
 */
export async function startPostgres(settings: readonly string[] = []): Promise<TestPostgres> {
  const folder = await serverFolder('postgres');
  const data = join(folder, 'data');
  const [port, user] = [await freePort(), await ownerOf(folder)];
  const options = { cwd: folder, ...user };
  await initialize(folder, data, options);
  const server = await launch(
    program('postgres'),
    [
      ...[
        '-D',
        data,
        '-p',
        String(port),
        '-c',
        'listen_addresses=127.0.0.1',
        '-c',
        'unix_socket_directories=',
      ],
      ...[...DEFAULTS, ...settings].flatMap((one) => ['-c', one]),
    ],
    'database system is ready to accept connections',
    options,
  );
  const urlOf = (name: string, database: string) =>
    `postgres://${name}:${PASSWORD}@127.0.0.1:${port}/${database}`;
  const administer = (statement: string) => run(urlOf(ADMINISTRATOR, 'postgres'), statement);
  await administer(`CREATE ROLE ${USER} LOGIN PASSWORD '${PASSWORD}'`);
  const administratorUrl = urlOf(ADMINISTRATOR, 'postgres');
  return {
    administer,
    administratorUrl,
    newDatabase: () => newDatabaseAt(administratorUrl),
    async close() {
      // SIGQUIT ends it at once with all its processes.
      await end(server, 'SIGQUIT');
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Creates an empty database at the server of `startPostgres`, perhaps one of another process. Returns its URL. */
export async function newDatabaseAt(administratorUrl: string): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await run(administratorUrl, `CREATE DATABASE ${name} OWNER ${USER}`);
  const { host } = new URL(administratorUrl);
  return `postgres://${USER}:${PASSWORD}@${host}/${name}`;
}

interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/** Returns the user that owns the data: PostgreSQL refuses to run as root, and its package makes one for it. */
async function ownerOf(folder: string): Promise<Owner> {
  if (process.getuid?.() !== 0) return {};
  const [uid = 0, gid = 0] = ['-u', '-g'].map((option) =>
    Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' })),
  );
  await chown(folder, uid, gid);
  return { uid, gid };
}

async function initialize(folder: string, data: string, options: Owner & { cwd: string }): Promise<void> {
  const passwordFile = join(folder, 'password');
  await writeFile(passwordFile, PASSWORD);
  await promisify(execFile)(
    program('initdb'),
    [
      ...['-D', data, '-U', ADMINISTRATOR, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`, '--no-sync'],
      ...['-E', 'UTF8', '--locale=C.UTF-8', '--locale-provider=icu', '--icu-locale=en'],
    ],
    options,
  );
}

/** Returns the path of a program of the newest version, or its name where the PATH has it. */
function program(name: string): string {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS) : [];
  const [newest] = versions.sort((a, b) => Number(b) - Number(a));
  return newest === undefined ? name : join(VERSIONS, newest, 'bin', name);
}

async function run(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
