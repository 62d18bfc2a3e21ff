import { type ChildProcess, execFile, execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chown, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, type QueryResultRow } from 'pg';
import { freePort } from './free-port.ts';
import { end, launch } from './launched.ts';
import { serverFolder } from './server-folder.ts';

/** Settings that a test may override. Shared memory is in the data's folder, so that a killed server leaves none. */
const DEFAULTS = [
  'autovacuum=off',
  'max_connections=200',
  'shared_buffers=32MB',
  'dynamic_shared_memory_type=mmap',
];

/** Debian's folder with one for each version of PostgreSQL. */
const VERSIONS = '/usr/lib/postgresql';

const ADMINISTRATOR = 'postgres';

/** The password of the administrator, and of the user of the tests' URLs. */
export const PASSWORD = 'correct-horse';

/** A real PostgreSQL on a loopback port, which can be stopped and started again on its data. */
export class PostgresServer {
  #process: ChildProcess | undefined;

  private constructor(
    private readonly folder: string,
    private readonly owner: Owner,
    readonly port: number,
    private readonly settings: readonly string[],
  ) {}

  /** Makes a server with new data; it has not been started. Its default collation is that of a language. */
  static async withNewData(settings: readonly string[] = [], folder?: string): Promise<PostgresServer> {
    const server = await PostgresServer.#withoutData(settings, folder);
    const passwordFile = join(server.folder, 'password');
    await writeFile(passwordFile, PASSWORD);
    await server.#run('initdb', [
      ...['-D', server.#data, '-U', ADMINISTRATOR, '-A', 'scram-sha-256'],
      ...[`--pwfile=${passwordFile}`, '--no-sync', '-E', 'UTF8'],
      ...['--locale=C.UTF-8', '--locale-provider=icu', '--icu-locale=en'],
    ]);
    return server;
  }

  /** Makes a server that follows this one, which runs; it has not been started. */
  async newStandby(): Promise<PostgresServer> {
    const standby = await PostgresServer.#withoutData(this.settings);
    await standby.#run('pg_basebackup', [
      ...['-d', this.administratorUrl, '-D', standby.#data],
      ...['--write-recovery-conf', '--wal-method=stream', '--checkpoint=fast', '--no-sync'],
    ]);
    return standby;
  }

  static async #withoutData(settings: readonly string[], given?: string): Promise<PostgresServer> {
    const folder = given ?? (await serverFolder('postgres'));
    return new PostgresServer(folder, await ownerOf(folder), await freePort(), settings);
  }

  get administratorUrl(): string {
    return urlOf(ADMINISTRATOR, `127.0.0.1:${this.port}`, 'postgres');
  }

  /** The process id of a server that runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  async start(): Promise<void> {
    const settings = [
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      ...DEFAULTS,
      ...this.settings,
    ];
    this.#process = await launch(
      postgresProgram('postgres'),
      ['-D', this.#data, '-p', String(this.port), ...settings.flatMap((one) => ['-c', one])],
      'database system is ready to accept',
      { cwd: this.folder, ...this.owner },
    );
  }

  /** SIGQUIT ends it at once with all its processes, like `pg_ctl stop -m immediate`; SIGKILL like a crash. */
  async stop(signal: 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    if (this.#process) await end(this.#process, signal);
  }

  /** Stops it and removes its data. */
  async close(): Promise<void> {
    await this.stop('SIGQUIT');
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Runs a statement as the administrator. */
  async administer<Row extends QueryResultRow>(statement: string): Promise<readonly Row[]> {
    return await queried<Row>(this.administratorUrl, statement);
  }

  async #run(name: string, args: readonly string[]): Promise<void> {
    await promisify(execFile)(postgresProgram(name), args, { cwd: this.folder, ...this.owner });
  }

  get #data(): string {
    return join(this.folder, 'data');
  }
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

/** Returns the path of a program of the newest version, or its name where the PATH has it. */
function postgresProgram(name: string): string {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS) : [];
  const [newest] = versions.sort((a, b) => Number(b) - Number(a));
  return newest === undefined ? name : join(VERSIONS, newest, 'bin', name);
}

export function urlOf(user: string, host: string, database: string): string {
  return `postgres://${user}:${PASSWORD}@${host}/${database}`;
}

/** Runs a statement on a connection of its own. */
export async function queried<Row extends QueryResultRow>(
  url: string,
  statement: string,
): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url });
  // A server that is stopped meanwhile.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end();
  }
}
