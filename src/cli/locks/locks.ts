import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createLockAdmin, type LockAdmin, type LockChoice } from '../../app/lock-admin.ts';
import { type Config, controlSocketIn, resolveConfig } from '../../config/configuration.ts';
import { ConfigError } from '../../config/settings.ts';
import { StateInUse } from '../../state/errors.ts';
import { openRedisState } from '../../state/redis/state.ts';
import { openSqliteState } from '../../state/sqlite/state.ts';
import type { State } from '../../state/state.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { PACKAGE_ROOT } from '../../util/package.ts';
import { settingsOfArguments } from '../arguments.ts';
import { ControlClient } from '../control-client.ts';
import { loadSettings } from '../load-settings.ts';
import { asPlainText } from '../table.ts';
import { lockTable } from './lock-table.ts';
import { askRunningDavgate } from './running-davgate.ts';

const HELP = `Lists the locks of clients, and removes locks that no client will release.

Usage: davgate locks [options of serve]
       davgate locks remove TOKEN [options of serve]
       davgate locks remove [--user NAME] [--path PATH] [options of serve]

--user NAME   remove the locks of this user
--path PATH   remove the locks on this path of the drive and below it; with --user, only those of that user

Reads the data directory (--data-dir) or the Redis of serve, whether davgate is running or not. A client whose lock was
removed gets an error at its next save.
`;

/** `davgate locks`: lists or removes locks. Returns the exit code. */
export async function locksCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  if (args.includes('--help')) {
    console.log(HELP);
    return 0;
  }
  const { choice, rest } = args[0] === 'remove' ? choiceIn(args.slice(1)) : { choice: undefined, rest: args };
  const { settings, file } = await loadSettings(settingsOfArguments(rest), environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  return withLockAdmin(config, (admin) => (choice ? remove(admin, choice) : list(admin)));
}

/** Returns the locks that the words after `remove` select, and the options of serve after them. Throws `ConfigError`. */
function choiceIn(words: readonly string[]): {
  readonly choice: LockChoice;
  readonly rest: readonly string[];
} {
  const [token, ...others] = words;
  // A Lock-Token header, from which it may be copied, has the token in angle brackets.
  if (token !== undefined && !token.startsWith('--'))
    return { choice: { token: token.replace(/^<|>$/g, '') }, rest: others };
  const choice: { user?: string; path?: string } = {};
  let rest = words;
  // Only at the front: among the options of serve, --user is the name of the login.
  for (let part = partIn(rest); part && choice[part.name] === undefined; part = partIn(rest)) {
    choice[part.name] = part.value;
    rest = part.rest;
  }
  if (choice.user === undefined && choice.path === undefined)
    throw new ConfigError(
      'locks remove: no locks selected; give a token that davgate locks lists, --user NAME or --path PATH',
    );
  return { choice, rest };
}

/** Parses `--user NAME` or `--path PATH`, also with "=", at the front of `words`. */
function partIn(words: readonly string[]) {
  const [, name, joined] = /^--(user|path)(?:=(.*))?$/s.exec(words[0] ?? '') ?? [];
  if (name !== 'user' && name !== 'path') return undefined;
  const value = joined ?? words[1];
  if (value === undefined || value === '') throw new ConfigError(`locks remove: --${name} needs a value`);
  return { name, value, rest: words.slice(joined === undefined ? 2 : 1) } as const;
}

async function list(admin: LockAdmin): Promise<number> {
  console.log(lockTable(await admin.locks(), systemClock.now()));
  return 0;
}

async function remove(admin: LockAdmin, choice: LockChoice): Promise<number> {
  const removed = await admin.removeLocks(choice);
  if (removed.length === 0) {
    const what = choice.token === undefined ? 'no such lock' : 'no lock has this token';
    process.stderr.write(`davgate: ${what}; davgate locks lists them\n`);
    return 1;
  }
  for (const { root } of removed) console.log(`The lock on ${asPlainText(root)} was removed.`);
  return 0;
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
