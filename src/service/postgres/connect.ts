import { Client, type ClientBase, Pool, types } from 'pg';
import type { Log } from '../../util/log.ts';
import { PostgresError, RejectedServerError } from './errors.ts';
import type { Queries } from './queries.ts';

/** Maximum number of connections of one process: ten processes fit into PostgreSQL's default of 100. */
const CONNECTIONS_MAX = 9;

/** How long a call waits for a connection, in ms: a new one, or one that other calls have. */
const CONNECT_TIMEOUT_MS = 10_000;

/** How long an unused connection is kept, in ms. */
const IDLE_MS = 60_000;

/**
 * How long a statement waits for its answer, in ms, before its connection is given up. Measured here, because poolers
 * like PgBouncer refuse connections that set `statement_timeout`.
 */
const QUERY_TIMEOUT_MS = 60_000;

/** The name by which the connections of services are known in `pg_stat_activity`. */
export const SERVICE_NAME = 'davgate';

export interface PoolOptions {
  /** `SERVICE_NAME` by default. */
  readonly applicationName?: string;
  /** Called with each new connection and the name of the database. The connection is not used if it throws. */
  readonly accept?: (on: Queries, name: string) => Promise<void>;
}

/**
 * Opens connections to the database at `postgres://user:password@host:port/database`; the first call connects. The
 * connections have no state of their own, so that a pooler may give each transaction another one. Throws
 * `PostgresError` for an address that is none.
 */
export function openPool(url: string, log: Log, options: PoolOptions = {}): Pool {
  if (!/^postgres(ql)?:\/\//.test(url)) throw notAnAddress();
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    application_name: options.applicationName ?? SERVICE_NAME,
    types: { getTypeParser },
    onConnect: (client) => expectAccepted(client),
  });
  // A pool that is printed must not show the password.
  Object.defineProperty(pool.options, 'connectionString', { enumerable: false });
  const name = databaseName(pool);
  const expectAccepted = acceptance(name, log, options.accept);
  // Without listeners, Node ends the process. A connection can fail between two statements, and before its first one.
  pool.on('connect', (client) => client.on('error', () => undefined));
  // The pool connects again at the next call.
  pool.on('error', (error) =>
    log.warn('a connection to the database failed', { name, error: error.message }),
  );
  return pool;
}

/**
 * Returns the check of a new connection. Each one is checked, because DNS or a proxy may lead to another server than before.
 * The pool waits for it, and closes a connection for which it throws.
 */
function acceptance(
  name: string,
  log: Log,
  accept: PoolOptions['accept'],
): (client: ClientBase) => Promise<void> {
  // Callers connect again and again: one line is enough.
  let isTold = false;
  return async (client) => {
    try {
      await expectPrimary(client, name);
      await accept?.(client, name);
      isTold = false;
    } catch (failure) {
      if (failure instanceof RejectedServerError && !isTold) {
        log.warn('a server of the database is not used', { name, error: failure.message });
        isTold = true;
      }
      throw failure;
    }
  };
}

/**
 * Throws `RejectedServerError` for a server that recovers: a standby, or a former primary that has become one. It answers
 * queries, and may lack acknowledged commits.
 */
async function expectPrimary(client: ClientBase, name: string): Promise<void> {
  // A variable, because the types of the client do not know `query_timeout` here.
  const query = {
    text: 'SELECT pg_is_in_recovery() AS "isStandby"',
    query_timeout: CONNECT_TIMEOUT_MS,
  };
  const { rows } = await client.query<{ isStandby: boolean }>(query);
  if (rows[0]?.isStandby !== false)
    throw new RejectedServerError(
      `${name} is a standby, which may lack acknowledged changes: give the address of its primary`,
    );
}

/** Returns the name of a pool's database for messages, without user and password. */
export function databaseName(pool: Pool): string {
  const { database = '', host, port } = clientOf(pool);
  const place = host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return `the PostgreSQL database ${database} at ${place}`;
}

/** Returns a client that is not connected, to learn how the address and the environment are read together. */
function clientOf(pool: Pool): Client {
  try {
    return new Client(pool.options);
  } catch {
    // Without a cause: it may have the password.
    throw notAnAddress();
  }
}

function notAnAddress(): PostgresError {
  return new PostgresError(
    'address',
    'not the address of a PostgreSQL database: write postgres://user:password@host:port/database',
  );
}

/** Like pg's own, with numbers for bigint: ours are counts, times in ms and sizes in bytes, all exact below 2⁵³. */
const getTypeParser: typeof types.getTypeParser = (id, format) =>
  id === types.builtins.INT8 ? Number : types.getTypeParser(id, format);
