import { eventually } from './eventually.ts';
import { createUser, newDatabaseAt } from './postgres.ts';
import { startPostgresForwarder } from './postgres-forwarder.ts';
import { PostgresServer } from './postgres-server.ts';

/** A PostgreSQL with a synchronous standby. Clients find the primary of the moment at one address. */
export interface PostgresPair {
  /** Creates an empty database. Returns its URL. */
  newDatabase(): Promise<string>;
  /** Stops the primary like `pg_ctl stop -m immediate`, and starts it again after `work`. */
  whileStopped(work: () => Promise<void>): Promise<void>;
  /** Kills the primary, promotes the standby, and gives it a standby. Commits wait until that one has them. */
  failOver(): Promise<void>;
  close(): Promise<void>;
}

const SETTINGS = ['wal_retrieve_retry_interval=100ms', 'wal_receiver_status_interval=1s'];

/** Starts both servers, which takes seconds. */
export async function startPostgresPair(): Promise<PostgresPair> {
  let primary = await PostgresServer.withNewData(SETTINGS);
  await primary.start();
  await createUser(primary);
  // Stored with the data, and copied to every standby, which has it once it is the primary.
  await primary.administer(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
  let standby = await primary.newStandby();
  await standby.start();
  await primary.administer('SELECT pg_reload_conf()');
  await synchronous(primary);
  const forwarder = await startPostgresForwarder(primary.port);
  return {
    newDatabase: async () => forwarder.through(await newDatabaseAt(primary.administratorUrl)),
    async whileStopped(work) {
      await primary.stop('SIGQUIT');
      await work();
      await primary.start();
    },
    async failOver() {
      const killed = primary;
      await killed.stop('SIGKILL');
      // A process of the killed one that still runs gets no more clients.
      forwarder.switchTo(undefined);
      await standby.administer('SELECT pg_promote()');
      primary = standby;
      forwarder.switchTo(primary.port);
      standby = await primary.newStandby();
      await standby.start();
      await synchronous(primary);
      await killed.close();
    },
    async close() {
      await forwarder.close();
      await standby.close();
      await primary.close();
    },
  };
}

/** Resolves when commits wait for a standby. */
async function synchronous(primary: PostgresServer): Promise<void> {
  await eventually(async () => {
    const states = await primary.administer<{ sync_state: string }>(
      'SELECT sync_state FROM pg_stat_replication',
    );
    if (states[0]?.sync_state !== 'sync') throw new Error('the standby is not synchronous yet');
  });
}
