import { ErrorReply } from '@redis/client';
import type { Log } from '../../util/log.ts';
import { StateUnavailable, VolatileState } from '../errors.ts';
import { textsOf } from './answers.ts';
import type { Connection } from './connection.ts';

/** The settings of Redis that decide what it forgets. */
const NAMES = ['appendonly', 'appendfsync', 'maxmemory-policy'] as const;

/** What is lost with Redis without a disk. */
const LOSS =
  'locks, properties, local files, app passwords, links for uploads and empty files that wait for their content';

/**
 * Throws `VolatileState` if Redis may forget acknowledged changes when it stops or when its memory is full. With `isVolatile`
 * that is only a warning, as for a hosted Redis that does not tell its settings.
 */
export async function checkPersistence(
  connection: Connection,
  { isVolatile, log }: { readonly isVolatile: boolean; readonly log: Log },
): Promise<void> {
  const redis = connection.shownUrl;
  const answers = await Promise.all(connection.primaries().map(settingsOf));
  const settings = answers.filter((answer) => answer !== undefined);
  if (settings.length < answers.length) {
    log.warn('Redis does not tell its settings; make sure that it has "appendonly yes"', { redis });
    return;
  }
  const faults = [
    ...(settings.some(([appendonly]) => appendonly === 'no')
      ? [{ event: `Redis forgets ${LOSS} when it stops`, mend: 'appendonly yes' }]
      : []),
    ...(settings.some(([, , policy]) => policy?.startsWith('allkeys'))
      ? [{ event: `Redis drops ${LOSS} when its memory is full`, mend: 'maxmemory-policy noeviction' }]
      : []),
  ];
  for (const { event, mend } of faults) {
    if (!isVolatile)
      throw new VolatileState(
        `${event}: ${redis}; give it "${mend}" in redis.conf, or accept the loss with --redis-volatile`,
      );
    log.warn(`${event}; give it "${mend}"`, { redis });
  }
  const appendfsync = settings.find(([appendonly, value]) => appendonly === 'yes' && value !== 'always')?.[1];
  if (appendfsync !== undefined)
    log.info('Redis may lose its last second; "appendfsync always" loses nothing', { redis, appendfsync });
}

/** Returns the values of `NAMES`; `undefined` where a hosted Redis hides them. */
async function settingsOf(
  command: (...words: string[]) => Promise<unknown>,
): Promise<readonly (string | undefined)[] | undefined> {
  const settingOf = async (name: string) => textsOf(await command('CONFIG', 'GET', name))[1];
  try {
    return await Promise.all(NAMES.map(settingOf));
  } catch (error) {
    if ((error instanceof StateUnavailable ? error.cause : error) instanceof ErrorReply) return undefined;
    throw error;
  }
}
