import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { StateUnavailable } from '../errors.ts';
import { type DriveState, SECRET_BYTES, type State } from '../state.ts';
import { textOf } from './answers.ts';
import { redisAppPasswords } from './app-passwords.ts';
import { redisBudget } from './budgets.ts';
import { redisChangeStream } from './change-stream.ts';
import { ClockCheck } from './clock-check.ts';
import { redisCommitTurns } from './commit-turns.ts';
import { Connection } from './connection.ts';
import { driveStore } from './drive-keys.ts';
import { redisGatewayLeases } from './gateway-leases.ts';
import { redisIntents } from './intents.ts';
import { LOCAL_FILES_BYTES_MAX, redisLocalFiles } from './local-files.ts';
import { redisLocks } from './locks.ts';
import { redisOwners } from './owners.ts';
import { checkPersistence } from './persistence.ts';
import { redisPlaceholders } from './placeholders.ts';
import { redisProperties } from './properties.ts';
import { rekeyDrives } from './rekey.ts';
import { redisReplacements } from './replacements.ts';
import { ReplicaAcks } from './replica-acks.ts';
import { redisTimes } from './times.ts';
import { redisUploadLinks } from './upload-links.ts';
import { Withdrawals } from './withdrawals.ts';

export interface RedisStateOptions {
  /** `redis://` or `rediss://`, with user, password and database number if needed. */
  readonly url: string;
  /** The id of this gateway, the same after each restart. The default is a new one. */
  readonly gateway?: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether Redis may forget the state when it stops; otherwise such a Redis is refused. */
  readonly isVolatile?: boolean;
  /** Maximum size of all local files of one drive, in bytes. */
  readonly localFilesBytesMax?: number;
}

/** Key of the version of the format. */
const FORMAT_KEY = 'davgate:format';
const FORMAT = '1';

/**
 * Opens the state in a Redis that several gateways share: drives with the same name are one drive. A resolved promise
 * means that the change is in Redis; whether the last second of changes survives a kill of Redis depends on its
 * `appendfsync`, and the log warns when it is insufficient. Throws `VolatileState` for a Redis that keeps nothing on a disk,
 * and `StateUnavailable`, as does every operation while Redis is unreachable.
 */
export async function openRedisState(options: RedisStateOptions): Promise<State> {
  const { url, clock, log, localFilesBytesMax = LOCAL_FILES_BYTES_MAX, isVolatile = false } = options;
  const connection = new Connection({ url, clock, log });
  const clockCheck = new ClockCheck({ connection, clock, log });
  await connection.connect();
  try {
    await checkFormat(connection);
    await rekeyDrives(connection);
    await checkPersistence(connection, { isVolatile, log });
    await clockCheck.start();
  } catch (error) {
    await connection.close();
    throw error;
  }
  const { gateway = randomUUID() } = options;
  const withdrawals = new Withdrawals({ clock, log });
  const deps = { connection, gateway, clock, log, localFilesBytesMax, withdrawals };
  return {
    owners: redisOwners(connection),
    appPasswords: redisAppPasswords(connection),
    uploadLinks: redisUploadLinks(connection),
    drive: (drive) => openDrive(drive, deps),
    trouble: () => connection.trouble(),
    budget: (account) => redisBudget(connection, account),
    commitTurns: (namespace) => redisCommitTurns(connection, namespace),
    close() {
      clockCheck.close();
      withdrawals.close();
      return connection.close();
    },
  };
}

interface DriveDeps {
  readonly connection: Connection;
  /** The id of this gateway. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly localFilesBytesMax: number;
  readonly withdrawals: Withdrawals;
}

function openDrive(drive: string, deps: DriveDeps): DriveState {
  const { connection, gateway, clock, log, localFilesBytesMax, withdrawals } = deps;
  const store = driveStore(connection, drive);
  const replicas = new ReplicaAcks({ connection, key: store.key('locks'), clock, log });
  return {
    locks: redisLocks(store, { clock, log, withdrawals, replicas }),
    properties: redisProperties(store),
    localFiles: redisLocalFiles(store, localFilesBytesMax),
    placeholders: redisPlaceholders(store),
    times: redisTimes(store),
    replacements: redisReplacements(store),
    intents: redisIntents(store),
    changeStream: redisChangeStream(store),
    gatewayLeases: redisGatewayLeases(store, gateway),
    async secret() {
      const secret = store.key('secret');
      await connection.command('SET', secret, randomBytes(SECRET_BYTES).toString('base64'), 'NX');
      return Buffer.from(textOf(await connection.command('GET', secret)), 'base64');
    },
  };
}

async function checkFormat(connection: Connection): Promise<void> {
  await connection.command('SET', FORMAT_KEY, FORMAT, 'NX');
  const format = textOf(await connection.command('GET', FORMAT_KEY));
  if (format !== FORMAT)
    throw new StateUnavailable(
      connection.shownUrl,
      `another version of davgate has written it (format ${format}); run that version, or give another database`,
    );
}
