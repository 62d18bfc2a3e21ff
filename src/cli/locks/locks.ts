import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createLockAdmin, type LockAdmin, type LockChoice } from '../../app/lock-admin.ts';
import { type Config, controlSocketIn, resolveConfig } from '../../config/configuration.ts';
import { ConfigError, type Settings } from '../../config/settings.ts';
import { StateInUse } from '../../state/errors.ts';
import { openRedisState } from '../../state/redis/state.ts';
import { openSqliteState } from '../../state/sqlite/state.ts';
import type { State } from '../../state/state.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { PACKAGE_ROOT } from '../../util/package.ts';
import { ControlClient } from '../control-client.ts';
import { loadSettings } from '../load-settings.ts';
import { asPlainText } from '../table.ts';
import { lockJson, lockTable } from './lock-table.ts';
import { askRunningDavgate } from './running-davgate.ts';

interface ListOptions {
  readonly say: (line: string) => void;
  readonly isJson: boolean;
}

/** `davgate locks`: lists the locks. */
export async function listLocks(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { say, isJson }: ListOptions,
): Promise<void> {
  const locks = await withLockAdmin(await configOf(flags, environment), (admin) => admin.locks());
  say(isJson ? lockJson(locks) : lockTable(locks, systemClock.now()));
}

/** `davgate locks remove`: removes the chosen locks. Returns the exit code. */
export async function removeLocks(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  chosen: LockChoice,
): Promise<number> {
  const choice = checkedChoice(chosen);
  const removed = await withLockAdmin(await configOf(flags, environment), (admin) =>
    admin.removeLocks(choice),
  );
  if (removed.length === 0) {
    const what = choice.token === undefined ? 'no such lock' : 'no lock has this token';
    process.stderr.write(`davgate: ${what}; davgate locks lists them\n`);
    return 1;
  }
  for (const { root } of removed) console.log(`The lock on ${asPlainText(root)} was removed.`);
  return 0;
}

async function configOf(flags: Settings, environment: NodeJS.ProcessEnv): Promise<Config> {
  const { settings, file } = await loadSettings(flags, environment);
  return resolveConfig(settings, file, environment, PACKAGE_ROOT);
}

/** Throws `ConfigError` for a choice that selects nothing. */
function checkedChoice({ token, user, path }: LockChoice): LockChoice {
  for (const [name, value] of [
    ['user', user],
    ['path', path],
  ] as const)
    if (value === '') throw new ConfigError(`locks remove: --${name} needs a value`);
  if (token === undefined && user === undefined && path === undefined)
    throw new ConfigError(
      'locks remove: no locks selected; give a token that davgate locks lists, --user NAME or --path PATH',
    );
  if (token !== undefined && (user !== undefined || path !== undefined))
    throw new ConfigError('locks remove: a token names one lock; leave out --user and --path');
  // A Lock-Token header, from which it may be copied, has the token in angle brackets.
  if (token !== undefined) return { token: token.replace(/^<|>$/g, '') };
  return { ...(user !== undefined && { user }), ...(path !== undefined && { path }) };
}

/** Runs `work` on the running davgate's locks, or on the state that this process opens for it. */
async function withLockAdmin<T>(config: Config, work: (admin: LockAdmin) => Promise<T>): Promise<T> {
  const state = await openedState(config);
  if (state === 'running')
    return work(askRunningDavgate(new ControlClient(controlSocketIn(config), config.dataDirectory)));
  try {
    return await work(lockAdminOf(config, state));
  } finally {
    await state?.close();
  }
}

function lockAdminOf({ drives }: Config, state: State | undefined): LockAdmin {
  const each = state ? drives.map(({ name }) => [name, state.drive(name)] as const) : [];
  return createLockAdmin(new Map(each), systemClock);
}

/**
 * Opens the state; `'running'` if a running davgate has the SQLite state open, which only one process can, and
 * `undefined` if there is no state.
 */
async function openedState({ redisUrl, dataDirectory }: Config): Promise<State | 'running' | undefined> {
  if (redisUrl !== undefined)
    return openRedisState({ url: redisUrl, isVolatile: true, clock: systemClock, log: silentLog });
  const directory = join(dataDirectory, 'state');
  if (!existsSync(join(directory, 'state.db'))) return undefined;
  try {
    return openSqliteState({ directory });
  } catch (error) {
    if (error instanceof StateInUse) return 'running';
    throw error;
  }
}
