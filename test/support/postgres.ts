import { randomBytes } from 'node:crypto';
import { PASSWORD, PostgresServer, queried, urlOf } from './postgres-server.ts';

export interface TestPostgres {
  /** URL of the administrator. */
  readonly administratorUrl: string;
  /** The process whose children are all others of this PostgreSQL. */
  readonly pid: number;
  /** Creates an empty database. Returns its URL, with the name and password of a user without other rights. */
  newDatabase(): Promise<string>;
  /** Runs a statement as the administrator. */
  administer(statement: string): Promise<void>;
  /** Stops PostgreSQL and removes its data. */
  close(): Promise<void>;
}

/** The user of the tests' URLs. */
const USER = 'davgate';

/**
 * Starts a real PostgreSQL on a free loopback port; this takes seconds, so that the tests of a file share one. `settings`
 * are like `fsync=off`. Its default collation is that of a language, in which a comparison that forgets to ask for another
 * order shows. The data is in `givenFolder`, which is removed at the end; by default in one that may be in memory.
 */
export async function startPostgres(
  settings: readonly string[] = [],
  givenFolder?: string,
): Promise<TestPostgres> {
  const server = await PostgresServer.withNewData(settings, givenFolder);
  await server.start();
  await createUser(server);
  const { administratorUrl } = server;
  return {
    administratorUrl,
    pid: server.pid ?? 0,
    newDatabase: () => newDatabaseAt(administratorUrl),
    async administer(statement) {
      await server.administer(statement);
    },
    close: () => server.close(),
  };
}

/** Creates the user of the tests' URLs. */
export async function createUser(server: PostgresServer): Promise<void> {
  await server.administer(`CREATE ROLE ${USER} LOGIN PASSWORD '${PASSWORD}'`);
}

/** Creates an empty database at the server of `startPostgres`, perhaps one of another process. Returns its URL. */
export async function newDatabaseAt(administratorUrl: string): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await queried(administratorUrl, `CREATE DATABASE ${name} OWNER ${USER}`);
  return urlOf(USER, new URL(administratorUrl).host, name);
}
