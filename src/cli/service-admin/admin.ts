import { ConfigError } from '../../config/settings.ts';
import { administer } from '../../service/admin/administration.ts';
import { optionsOf } from '../arguments.ts';
import { serviceDirectory } from '../service-directory.ts';
import { readSecret } from '../typed-secret.ts';
import { ACCOUNT_COMMANDS } from './account-commands.ts';
import { APP_COMMANDS } from './app-commands.ts';
import type { AdminCommand, Terminal } from './command.ts';
import { TOKEN_COMMANDS } from './token-commands.ts';
import type { Values } from './values.ts';

const COMMANDS: readonly AdminCommand[] = [...APP_COMMANDS, ...ACCOUNT_COMMANDS, ...TOKEN_COMMANDS];

/** The first words of the administration commands. */
export const ADMIN_WORDS: readonly string[] = ['app', 'account', 'token'];

/**
 * `davgate service app|account|token …`: works on the accounts in a service's data directory, whether or not the
 * service runs. Throws `ConfigError` for unusable arguments, and `AdminError` or `DataDirectoryError` for a command that
 * fails.
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
  const { values, operands } = parse(command, rest);
  if (values['help'] === true) return terminal.say(commandHelp(command));
  if (operands.length !== command.operands)
    throw new ConfigError(
      `wrong number of arguments; write davgate service ${command.name} ${command.usage}`,
    );
  const [operand = ''] = operands;
  const directory = serviceDirectory(values['data'], environment);
  await administer(directory, { mayCreate: command.mayCreate ?? false }, (administration) =>
    command.run({ administration, values, operand, ...terminal }),
  );
}

function parse(command: AdminCommand, args: readonly string[]): { values: Values; operands: string[] } {
  const options = { ...command.options, data: { type: 'string' }, help: { type: 'boolean' } } as const;
  const { values, positionals } = optionsOf(`service ${command.name}`, args, options, {
    allowPositionals: true,
  });
  return { values: values as Values, operands: positionals };
}

async function readPassword(): Promise<string> {
  const password = await readSecret();
  if (password === undefined)
    throw new ConfigError('--password-stdin: standard input contains no password; type or pipe one');
  return password;
}

const DATA_HELP = `  --data DIR          the service's data directory; default $XDG_DATA_HOME/davgate-service. A drive's embedded service
                      keeps its data in the folder "service" of the gateway's --data-dir`;

function groupHelp(noun: string): string {
  const lines = COMMANDS.filter(({ name }) => name.startsWith(`${noun} `)).map(
    ({ name, usage, summary }) => `  davgate service ${`${name} ${usage}`.trim()}\n      ${summary}`,
  );
  return `Works on a storage service's data directory, whether or not the service runs.\n\n${lines.join('\n')}\n\nOptions of all commands:\n${DATA_HELP}\n  --help              show the options of the command\n`;
}

function commandHelp({ name, usage, summary, help }: AdminCommand): string {
  const options = [help, DATA_HELP].filter((text) => text !== '').join('\n');
  return `Usage: davgate service ${`${name} ${usage}`.trim()} [--data DIR]\n\n${summary}\n\n${options}\n`;
}
