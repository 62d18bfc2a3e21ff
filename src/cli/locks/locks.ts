import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../config/settings.ts';
import { type Config, controlSocketIn, resolveConfig } from '../../config.ts';
import { createLockKeeper, type LockKeeper } from '../../lock-keeper.ts';
import { StateInUse } from '../../state/errors.ts';
import { openRedisState } from '../../state/redis/state.ts';
import { openSqliteState } from '../../state/sqlite/state.ts';
import type { State } from '../../state/state.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { settingsOfArguments } from '../arguments.ts';
import { loadSettings } from '../load-settings.ts';
import { PACKAGE_ROOT } from '../package.ts';
import { asPlainText, lockTable } from './lock-table.ts';
import { askRunningDavgate } from './running-davgate.ts';

const HELP = `The locks that clients hold, and an end to those that nobody will release.

Usage: davgate locks [options of serve]
       davgate locks remove TOKEN [options of serve]

It reads the data directory (--data-dir) or the Redis that serve uses, whether davgate is running or not. Who worked
under a lock that is removed is told so at the next save.
`;

/** `davgate locks`: lists them, or removes one. Returns the exit code. */
export async function locksCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  if (args.includes('--help')) {
    console.log(HELP);
    return 0;
  }
  const isRemoval = args[0] === 'remove';
  const token = isRemoval ? args[1] : undefined;
  if (isRemoval && (token === undefined || token.startsWith('--')))
    throw new ConfigError('locks remove: a token is missing; davgate locks lists them');
  const { settings, file } = loadSettings(settingsOfArguments(args.slice(isRemoval ? 2 : 0)), environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  return withKeeper(config, (keeper) => (token === undefined ? list(keeper) : remove(keeper, token)));
}

async function list(keeper: LockKeeper): Promise<number> {
  console.log(lockTable(await keeper.locks(), systemClock.now()));
  return 0;
}

async function remove(keeper: LockKeeper, token: string): Promise<number> {
  // As in a Lock-Token header, where it may have been copied from.
  const lock = await keeper.removeLock(token.replace(/^<|>$/g, ''));
  if (!lock) {
    process.stderr.write('davgate: no lock has this token; davgate locks lists them\n');
    return 1;
  }
  console.log(`The lock on ${asPlainText(lock.root)} is removed.`);
  return 0;
}

async function withKeeper<T>(config: Config, work: (keeper: LockKeeper) => Promise<T>): Promise<T> {
  const state = await openedState(config);
  if (state === 'running') return work(askRunningDavgate(controlSocketIn(config), config.dataDirectory));
  try {
    return await work(keeperOf(config, state));
  } finally {
    await state?.close();
  }
}

function keeperOf({ drives }: Config, state: State | undefined): LockKeeper {
  const each = state ? drives.map(({ name }) => [name, state.drive(name)] as const) : [];
  return createLockKeeper(new Map(each), systemClock);
}

/** `undefined`: nothing was ever kept here. SQLite's is of one process, and a running davgate has it. */
async function openedState({ redisUrl, dataDirectory }: Config): Promise<State | 'running' | undefined> {
  if (redisUrl !== undefined) return openRedisState({ url: redisUrl, clock: systemClock, log: silentLog });
  const directory = join(dataDirectory, 'state');
  if (!existsSync(join(directory, 'state.db'))) return undefined;
  try {
    return openSqliteState({ directory });
  } catch (error) {
    if (error instanceof StateInUse) return 'running';
    throw error;
  }
}
