import { ErrorReply } from '@redis/client';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { StateUnavailable } from '../errors.ts';
import { LOCAL_FILES_BYTES_MAX } from '../local-files.ts';
import type { DriveState, State } from '../state.ts';
import { textOf, textsOf } from './answers.ts';
import { redisAppPasswords } from './app-passwords.ts';
import { Connection } from './connection.ts';
import { driveStore } from './drive-keys.ts';
import { redisIntents } from './intents.ts';
import { redisLocalFiles } from './local-files.ts';
import { redisLocks } from './locks.ts';
import { redisOwners } from './owners.ts';
import { redisPlaceholders } from './placeholders.ts';
import { redisProperties } from './properties.ts';
import { rekeyDrives } from './rekey.ts';
import { redisReplacements } from './replacements.ts';
import { redisTimes } from './times.ts';

export interface RedisStateOptions {
  /** `redis://` or `rediss://`, with user, password and database number if needed. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Maximum size of all local files of one drive, in bytes. */
  readonly localFilesBytesMax?: number;
}

/** Key of the version of the format. */
const FORMAT_KEY = 'davgate:format';
const FORMAT = '1';

/**
 * Opens the state in a Redis that several gateways share: drives with the same name are one drive. A resolved promise
 * means that the change is in Redis; whether it survives a kill of Redis depends on its `appendonly` and `appendfsync`
 * settings, and the log warns when they are insufficient. Throws `StateUnavailable`, as does every operation while
 * Redis is unreachable.
 */
export async function openRedisState(options: RedisStateOptions): Promise<State> {
  const { url, clock, log, localFilesBytesMax = LOCAL_FILES_BYTES_MAX } = options;
  const connection = new Connection({ url, clock, log });
  await connection.connect();
  try {
    await checkFormat(connection);
    await rekeyDrives(connection);
    await warnOfLoss(connection, log);
  } catch (error) {
    await connection.close();
    throw error;
  }
  return {
    owners: redisOwners(connection),
    appPasswords: redisAppPasswords(connection),
    drive: (drive) => openDrive(drive, { connection, clock, log, localFilesBytesMax }),
    close: () => connection.close(),
  };
}

interface DriveParts {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly log: Log;
  readonly localFilesBytesMax: number;
}

function openDrive(drive: string, { connection, clock, log, localFilesBytesMax }: DriveParts): DriveState {
  const store = driveStore(connection, drive);
  return {
    locks: redisLocks(store, { clock, log }),
    properties: redisProperties(store),
    localFiles: redisLocalFiles(store, localFilesBytesMax),
    placeholders: redisPlaceholders(store),
    times: redisTimes(store),
    replacements: redisReplacements(store),
    intents: redisIntents(store),
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

/** Logs a warning for settings of Redis that allow the loss of acknowledged changes. */
async function warnOfLoss(connection: Connection, log: Log): Promise<void> {
  const redis = connection.shownUrl;
  const settings = await settingsOf(connection);
  if (!settings) {
    log.warn('Redis does not tell its settings; make sure that it has "appendonly yes"', { redis });
    return;
  }
  const [appendonly, appendfsync, policy] = settings;
  if (appendonly === 'no')
    log.warn('Redis forgets locks and properties when it stops; give it "appendonly yes"', { redis });
  else if (appendfsync !== 'always')
    log.info('Redis may lose its last second; "appendfsync always" loses nothing', { redis, appendfsync });
  if (policy?.startsWith('allkeys'))
    log.warn(
      'Redis drops locks and properties when its memory is full; give it "maxmemory-policy noeviction"',
      {
        redis,
        policy,
      },
    );
}

/** Returns `appendonly`, `appendfsync` and `maxmemory-policy`; `undefined` where a hosted Redis hides them. */
async function settingsOf(connection: Connection): Promise<readonly (string | undefined)[] | undefined> {
  const settingOf = async (name: string) => textsOf(await connection.command('CONFIG', 'GET', name))[1];
  try {
    return await Promise.all(['appendonly', 'appendfsync', 'maxmemory-policy'].map(settingOf));
  } catch (error) {
    if ((error instanceof StateUnavailable ? error.cause : error) instanceof ErrorReply) return undefined;
    throw error;
  }
}
