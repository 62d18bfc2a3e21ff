import { METADATA_VARIABLE } from '../../config/settings.ts';
import { type AdministeredStore, administer } from '../../service/admin/administration.ts';
import { SWITCHES } from '../../service/faults/switches.ts';
import { largest } from '../../util/extremes.ts';
import type { ServiceValues } from '../service.ts';
import { ACCOUNT_COMMANDS } from '../service-admin/account-commands.ts';
import { APP_COMMANDS } from '../service-admin/app-commands.ts';
import type { AdminCall, AdminCommand } from '../service-admin/command.ts';
import { TOKEN_COMMANDS } from '../service-admin/token-commands.ts';
import type { CheckValues } from '../service-check.ts';
import type { CopyValues } from '../service-copy.ts';
import { serviceDirectory } from '../service-directory.ts';
import type { CliCommand, ProgramDeps } from './cli-command.ts';

const GROUPS = [
  { noun: 'account', summary: 'create, list, change and remove accounts', commands: ACCOUNT_COMMANDS },
  { noun: 'app', summary: 'register, list, change and remove apps', commands: APP_COMMANDS },
  { noun: 'token', summary: 'create, list and revoke tokens', commands: TOKEN_COMMANDS },
] as const;

const DATA_FLAGS = '--data <DIR>';
const DATA_HELP =
  "the service's data directory; default $XDG_DATA_HOME/davgate-service. A drive's embedded service keeps its data in the folder \"service\" of the gateway's --data-dir";

const METADATA_FLAGS = '--metadata <postgres://…>';
const METADATA_HELP = 'the database of a service that was started with --metadata; default DAVGATE_METADATA';

/** Adds the commands of the storage service below `davgate service`. */
export function addServiceCommands(service: CliCommand, deps: ProgramDeps): void {
  service.description('The embedded storage service alone: the API over a local folder.');
  addRun(service, deps);
  const check = service.command('check').summary('look for damage in its files');
  check
    .description(
      'Checks every block and every row of a storage service. Changes nothing without --repair. A service with a data directory has to be stopped; with --metadata the services go on. Prints one line per damaged item on standard output, with its account, path and revision, and its progress on standard error.',
    )
    .option(DATA_FLAGS, DATA_HELP)
    .option(METADATA_FLAGS, METADATA_HELP)
    .option(
      '--blocks <s3://BUCKET>',
      'the bucket that the service was started with; with --metadata also its shared folder, /SHARED/FOLDER',
    )
    .option(
      '--keep-deleted-blocks <DAYS>',
      'with --metadata: a repair removes blocks that have belonged to nothing for longer. Default and least: what the services were started with',
    )
    .option(
      '--repair',
      'repair what can be repaired without a loss: counts of space and uses, the index of words and the keys of paths, and with --metadata remove stored blocks that have belonged to nothing for long',
    )
    .addHelpText(
      'after',
      '\nExit code 0: no damage, or all of it was repaired; 1: damage was found; 2: it could not be run.',
    )
    .runs(async () =>
      (await import('../service-check.ts')).serviceCheckCommand(check.opts<CheckValues>(), deps.environment),
    );
  addCopy(service, deps);
  for (const { noun, summary, commands } of GROUPS) {
    const group = service
      .command(noun)
      .summary(summary)
      .description(
        "Works on a storage service's data directory or, with --metadata, its database, whether or not the service runs.",
      );
    group.runs(async () => group.outputHelp());
    for (const command of commands) addAdmin(group, command, deps);
  }
}

function addCopy(service: CliCommand, { environment }: ProgramDeps): void {
  const copy = service.command('copy').summary('copy a whole service to another place');
  const place = 'a data directory, or postgres://USER@HOST/DATABASE';
  copy
    .description(
      'Copies a stopped storage service between a data directory and PostgreSQL, or between two of a kind, with everything that belongs to it, and compares both sides at the end. Changes nothing at the source. An interrupted copy is continued by the same command; until it has ended, no service starts on the target.',
    )
    .option('--from <PLACE>', `the service: ${place}`)
    .option(
      '--from-blocks <PLACE>',
      'the --blocks that it was started with: s3://BUCKET[/FOLDER][?endpoint=URL&region=NAME], or /SHARED/FOLDER',
    )
    .option(
      '--to <PLACE>',
      `where it is copied to: ${place}; empty, or with an unfinished copy of the same service`,
    )
    .option('--to-blocks <PLACE>', 'the --blocks for the copy; without it, the files of a data directory')
    .addHelpText(
      'after',
      `
The password of a database is read from PGPASSWORD or ~/.pgpass, the keys of buckets from
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

Exit code 0: both sides are equal; 2: the copy was refused or interrupted.`,
    )
    .runs(async () => {
      await (await import('../service-copy.ts')).serviceCopyCommand(copy.opts<CopyValues>(), environment);
    });
}

function addRun(service: CliCommand, { environment }: ProgramDeps): void {
  const run = service.addDefault('run', 'run the service (without a command)');
  run
    .description('Serves the API over a local folder until SIGTERM or Ctrl+C.')
    .option(
      '--listen <HOST:PORT>',
      'where to serve; default 127.0.0.1:8766. It plays the base, content and notify roles',
    )
    .option(
      '--tls-cert <FILE>',
      'serve https with this certificate (PEM); SIGHUP makes davgate read it again',
    )
    .option('--tls-key <FILE>', "the certificate's private key (PEM)")
    .option(
      '--content-listen <HOST:PORT>',
      "a second address, for functions that carry file bytes (content_url). Each address then rejects the functions of the other, as the real service's hosts do",
    )
    .option(
      '--public-url <URL>',
      "the address at which people reach the service; shared links begin with it. Default: the --listen address, with this machine's name for 0.0.0.0",
    )
    .option(
      '--content-public-url <URL>',
      'the address at which clients reach --content-listen behind a reverse proxy; temporary links begin with it. Default: --public-url',
    )
    .option(DATA_FLAGS, 'directory of its files; default $XDG_DATA_HOME/davgate-service')
    .option(
      METADATA_FLAGS,
      'keep accounts and metadata in a PostgreSQL database, postgres://USER@HOST/DATABASE, which several services share; the password in PGPASSWORD, or all of it in DAVGATE_METADATA. The data directory then has only credentials and what is not needed after a restart; each service has its own',
    )
    .option(
      '--blocks <s3://BUCKET>',
      'keep the contents of new files in a bucket: s3://BUCKET[/FOLDER][?endpoint=URL&region=NAME], with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; everything else stays in the data directory. From then on always needed. With --metadata also a folder that the services share, /SHARED/FOLDER',
    )
    .option(
      '--keep-deleted-blocks <DAYS>',
      'with --metadata: how long contents that nothing refers to are kept, for backups of the database; default and least 1. The services share the largest number that any was started with',
    )
    .option(
      '--trusted-proxy <CIDR>',
      'reverse proxies whose forwarding headers are trusted, as networks separated by commas',
    )
    .option('--fault <NAME=NUMBER>', 'a fault to inject, for tests of a client; repeatable', addValue)
    .option('--log-level <info|warn|error>', 'the lowest level that is logged; default info')
    .option('--log-format <text|json>', 'the format of the log; default text')
    .option('--json', 'print addresses and secrets as one line of JSON when the service is ready')
    .addHelpText('after', () => faultsHelp(run))
    .runs(async () => {
      await (await import('../service.ts')).serviceCommand(run.opts<ServiceValues>(), environment);
    });
}

function addAdmin(
  group: CliCommand,
  row: AdminCommand,
  { environment, say, readPassword }: ProgramDeps,
): void {
  const [, verb = ''] = row.name.split(' ');
  const command = group.command(verb).summary(row.summary);
  command.description(`${row.summary.charAt(0).toUpperCase()}${row.summary.slice(1)}.`);
  if (row.operand !== undefined) command.argument(`<${row.operand}>`);
  for (const { flags, help, isRepeatable } of row.options)
    if (isRepeatable) command.option(flags, help, addValue);
    else command.option(flags, help);
  command.option(DATA_FLAGS, DATA_HELP);
  command.option(METADATA_FLAGS, METADATA_HELP);
  if (row.notes !== undefined) command.addHelpText('after', `\n${row.notes}`);
  command.runs(async (operand = '') => {
    const { values } = command;
    await administer(
      administeredStore(values, environment),
      { mayCreate: row.mayCreate ?? false },
      (administration) => row.run({ administration, values, operand, say, readPassword }),
    );
  });
}

/** Returns the data of the service that a command works on. */
function administeredStore(values: AdminCall['values'], environment: NodeJS.ProcessEnv): AdministeredStore {
  const metadata = values['metadata'] ?? environment[METADATA_VARIABLE];
  return {
    dataDirectory: serviceDirectory(values['data'], environment),
    ...(typeof metadata === 'string' && { metadata }),
  };
}

/** Collects the values of a repeatable option. */
function addValue(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function faultsHelp(command: CliCommand): string {
  const width = largest(Object.keys(SWITCHES).map((name) => name.length));
  const rows = Object.entries(SWITCHES).map(([name, { help }]) => command.helpRow(name, width, help));
  return `
Faults, all 0 (off) by default. A call that downloads is a read, one that changes something a write,
any other metadata. Shares go from 0 to 1:
${rows.join('\n')}`;
}
