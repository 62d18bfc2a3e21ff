import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { unfinishedChanges } from '../../app/account-guard.ts';
import type { Settings } from '../../config/settings.ts';
import { DEFAULT_DRIVE } from '../../config/users.ts';
import { StateInUse } from '../../state/errors.ts';
import { openRedisState } from '../../state/redis/state.ts';
import { openSqliteJournals } from '../../state/sqlite/journal/journals.ts';
import { openSqliteState } from '../../state/sqlite/state.ts';
import type { State } from '../../state/state.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { terminalLog } from '../log.ts';
import { LoginError } from './login-error.ts';

/**
 * Throws `LoginError` while acknowledged writes are pending, or while a davgate runs that may accept more: they must not
 * end up in another account.
 */
export async function refusePendingWrites(dataDirectory: string, settings: Settings): Promise<void> {
  try {
    const count = (await changesInState(dataDirectory, settings)) + (await journaledFiles(dataDirectory));
    if (count === 0) return;
    throw new LoginError(
      `cannot change the account: files in ${dataDirectory} that must still be sent to the current one: ${count}; run davgate serve until /.davgate/healthz shows 0 heldFiles and 0 journalFiles, stop it, and try again`,
    );
  } catch (error) {
    if (!(error instanceof StateInUse)) throw error;
    throw new LoginError(
      `a davgate is running with ${dataDirectory} and would keep using the service that it serves now; stop it first`,
    );
  }
}

async function changesInState(dataDirectory: string, settings: Settings): Promise<number> {
  const state = await openedState(dataDirectory, settings);
  if (!state) return 0;
  try {
    return await unfinishedChanges(state, DEFAULT_DRIVE);
  } finally {
    await state.close();
  }
}

async function openedState(dataDirectory: string, settings: Settings): Promise<State | undefined> {
  const url = settings.get('redis')?.text;
  if (url !== undefined) return openRedisState({ url, isVolatile: true, clock: systemClock, log: silentLog });
  const directory = join(dataDirectory, 'state');
  return existsSync(directory) ? openSqliteState({ directory }) : undefined;
}

async function journaledFiles(dataDirectory: string): Promise<number> {
  const journal = join(dataDirectory, 'journal');
  if (!existsSync(journal)) return 0;
  const journals = await openSqliteJournals(
    { journal, lostAndFound: join(dataDirectory, 'lost-and-found') },
    terminalLog,
  );
  try {
    return (await (await journals.drive(DEFAULT_DRIVE)).all()).length;
  } finally {
    await journals.close();
  }
}
