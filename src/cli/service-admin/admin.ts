import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../config/settings.ts';
import { ACCOUNTS_FILE, accountsFailure, openDatabase } from '../../service/registry/database.ts';
import { type Registry, registryIn } from '../../service/registry/registry.ts';
import { systemClock } from '../../util/clock.ts';
import { serviceDirectory } from '../service-directory.ts';
import { readSecret } from '../typed-secret.ts';
import { wordsOf } from '../words.ts';
import { ACCOUNT_COMMANDS } from './account-commands.ts';
import { APP_COMMANDS } from './app-commands.ts';
import type { AdminCommand, Terminal } from './command.ts';
import { TOKEN_COMMANDS } from './token-commands.ts';
import type { Values } from './values.ts';

const COMMANDS: readonly AdminCommand[] = [...APP_COMMANDS, ...ACCOUNT_COMMANDS, ...TOKEN_COMMANDS];

/** The first words of the commands that work on a service's accounts. */
export const ADMIN_WORDS: readonly string[] = ['app', 'account', 'token'];

/**
 * `davgate service app|account|token …`: works on the accounts in a service's data directory, whether or not the
 * service runs. Throws `ConfigError` for anything that cannot be done.
 */
export async function adminCommand(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  terminal: Terminal = { say: (line) => console.log(line), readPassword },
): Promise<void> {
  const [noun = '', verb = '', ...rest] = args;
  const command = COMMANDS.find(({ name }) => name === `${noun} ${verb}`);
  if (!command) {
    if (verb === '' || verb === '--help') return terminal.say(groupHelp(noun));
    throw new ConfigError(
      `service ${noun} ${verb}: no such command; davgate service ${noun} --help lists them`,
    );
  }
  const { values, operands } = parsed(command, rest);
  if (values['help'] === true) return terminal.say(commandHelp(command));
  if (operands.length !== command.operands)
    throw new ConfigError(`write it like: davgate service ${command.name} ${command.usage}`);
  const directory = serviceDirectory(values['data'], environment);
  await onDirectory(directory, command, async (registry) => {
    const on = { ...registry, ...terminal, nowMs: systemClock.now() };
    await command.run(on, values, operands[0] ?? '');
  });
}

function parsed(command: AdminCommand, args: readonly string[]): { values: Values; operands: string[] } {
  const options = { ...command.options, data: { type: 'string' }, help: { type: 'boolean' } } as const;
  const given = wordsOf(`service ${command.name}`, args, options, { allowPositionals: true });
  return { values: given.values as Values, operands: given.positionals };
}

async function onDirectory(
  directory: string,
  { begins = false }: AdminCommand,
  work: (registry: Registry) => Promise<void>,
): Promise<void> {
  const file = join(directory, ACCOUNTS_FILE);
  if (!begins && !existsSync(file))
    throw new ConfigError(`${directory} holds no storage service: name its folder with --data DIR`);
  const database = openDatabase(directory);
  try {
    await work(registryIn(database));
  } catch (error) {
    throw accountsFailure(error, file);
  } finally {
    database.close();
  }
}

async function readPassword(): Promise<string> {
  const password = await readSecret();
  if (password === undefined) throw new ConfigError('--password-stdin: there was nothing to read');
  return password;
}

const DATA_HELP = `  --data DIR          the service's files; default $XDG_DATA_HOME/davgate-service. The one that is embedded in a gateway
                      has the folder "service" in the gateway's --data-dir`;

function groupHelp(noun: string): string {
  const lines = COMMANDS.filter(({ name }) => name.startsWith(`${noun} `)).map(
    ({ name, usage, summary }) => `  davgate service ${`${name} ${usage}`.trim()}\n      ${summary}`,
  );
  return `Works on a storage service's data directory, whether or not the service runs.\n\n${lines.join('\n')}\n\nEach takes:\n${DATA_HELP}\n  --help              what its options mean\n`;
}

function commandHelp({ name, usage, summary, help }: AdminCommand): string {
  const options = [help, DATA_HELP].filter((text) => text !== '').join('\n');
  return `Usage: davgate service ${`${name} ${usage}`.trim()} [--data DIR]\n\n${summary}\n\n${options}\n`;
}
