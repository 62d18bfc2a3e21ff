import { helpOf, OPTIONS } from '../../config/settings.ts';
import { largest } from '../../util/extremes.ts';
import type { CliCommand, ProgramDeps } from './cli-command.ts';

const JSON_HELP = 'print JSON';

const SERVE_OPTIONS_TOO = '\nTakes all options of davgate serve too.';

/** Adds the commands that serve a drive or work on its data directory. Each loads its modules when it runs. */
export function addDriveCommands(program: CliCommand, deps: ProgramDeps): void {
  addServe(program, deps);
  addSetup(program, deps);
  addLogin(program, deps);
  addDoctor(program, deps);
  addLocks(program, deps);
  addJournal(program, deps);
  addConfig(program, deps);
  program
    .command('hash-password')
    .summary('hash a password for a configuration file')
    .description(
      'Hashes a password for the "password-hash" of a user in a configuration file. Reads the password as one line from standard input, so that it appears in no process list and no shell history. A terminal hides it and asks for it twice.',
    )
    .allowExcessArguments()
    .runs(async (...words) => (await import('../hash-password.ts')).hashPasswordCommand(words));
}

function addServe(program: CliCommand, { environment }: ProgramDeps): void {
  const serve = program.addDefault('serve', 'serve the drive (without a command)');
  serve
    .description(
      'Serves the drive until SIGTERM or Ctrl+C. Each option has a variable and, without the dashes, a key in the configuration file. A flag takes precedence over its variable, a variable over the file.',
    )
    .takeSettings('all')
    .option('--json', 'print addresses and login as one line of JSON when davgate is ready')
    .addHelpText('after', () => secretsHelp(serve))
    .runs(async () =>
      (await import('../serve.ts')).serve(serve.settings, environment, { isJson: serve.has('json') }),
    );
}

/** Explains the settings that have no flag. */
function secretsHelp(command: CliCommand): string {
  const rows = OPTIONS.flatMap((row) => ('flag' in row ? [row] : []));
  const width = largest(rows.map(({ variable }) => variable.length));
  const lines = rows.map((row) => command.helpRow(row.variable, width, helpOf(row)));
  return `
Secrets come from variables or files, because every user of a machine can read command lines:
${lines.join('\n')}`;
}

function addLogin(program: CliCommand, { environment }: ProgramDeps): void {
  const login = program.command('login').summary('connect or disconnect an account of the service');
  login
    .description(
      'Connects an account of the storage service. davgate then serves it instead of the embedded service. The login is stored in login.json of the data directory, readable by this user only.',
    )
    .takeOnlySettings(['app-key', 'api-url', 'content-url', 'notify-url', 'data-dir', 'config'])
    .option(
      '--redirect <URL>',
      'an address of this machine that is registered with the app, like http://localhost:8764/. The browser sends the code there; without it you paste the code',
    )
    .option('--remove', 'revoke the login at the service and delete it here')
    .option('--no-browser', 'only print the address; in a terminal davgate opens it in your browser')
    .addHelpText(
      'after',
      `
Without --api-url, the account is one of the public service.

The app's secret is not needed. The app needs the scopes account_info.read, files.metadata.read,
files.content.read, files.content.write and, for shared links, sharing.read and sharing.write.`,
    )
    .runs(async () => {
      const redirect: unknown = login.getOptionValue('redirect');
      return (await import('../login/login.ts')).loginCommand(login.settings, environment, {
        isRemoved: login.has('remove'),
        redirectUri: typeof redirect === 'string' ? redirect : undefined,
        opensBrowser: process.stdout.isTTY && login.getOptionValue('browser') !== false,
      });
    });
}

function addSetup(program: CliCommand, { environment }: ProgramDeps): void {
  const setup = program.command('setup').summary('ask, write a configuration file and test it');
  setup
    .description(
      'Asks where the files are, who may use the drive and at which address. Checks each answer at once, explains how to connect an account, writes a configuration file (--config, by default $XDG_CONFIG_HOME/davgate/config.json, which every davgate command reads), tests it like davgate doctor, and says how to start davgate and mount the drive. The file is readable by you only, and has a hash of the password.',
    )
    .takeOnlySettings(['config', 'data-dir', 'api-url'])
    .option('--no-browser', 'only print addresses; davgate otherwise opens them in your browser')
    .runs(async () => {
      const opensBrowser = setup.getOptionValue('browser') !== false;
      return (await import('../setup/setup.ts')).setupCommand(setup.settings, environment, { opensBrowser });
    });
}

function addDoctor(program: CliCommand, { environment, say }: ProgramDeps): void {
  const doctor = program.command('doctor').summary('test the configuration against the live service');
  doctor
    .description(
      'Tests a configuration against this machine and the live service, and says how to fix what fails. Works in a folder of its own in the account, /.davgate-doctor-…, which it removes at the end, also after Ctrl+C; everything else stays untouched. Tokens are never printed.',
    )
    .takeSettings()
    .option('--json', JSON_HELP)
    .addHelpText(
      'after',
      `${SERVE_OPTIONS_TOO}\nExit code 0: no check failed; 1: a check failed; 2: the settings cannot be used.`,
    )
    .runs(async () => {
      const options = { say, isJson: doctor.has('json') };
      return (await import('../doctor/doctor.ts')).doctorCommand(doctor.settings, environment, options);
    });
}

function addLocks(program: CliCommand, { environment, say }: ProgramDeps): void {
  const locks = program
    .command('locks')
    .summary('list or remove the locks of clients')
    .description(
      'Lists the locks of clients, and removes locks that no client will release. Reads the data directory or the Redis of serve, whether davgate is running or not. A client whose lock was removed gets an error at its next save.',
    );
  const list = locks.addDefault('list', 'list the locks (without a command)');
  list
    .description('Lists the locks of clients.')
    .takeSettings(['config', 'data-dir', 'redis'])
    .option('--json', JSON_HELP)
    .addHelpText('after', SERVE_OPTIONS_TOO)
    .runs(async () => {
      const options = { say, isJson: list.has('json') };
      await (await import('../locks/locks.ts')).listLocks(list.settings, environment, options);
    });
  const remove = locks.command('remove').summary('remove locks');
  remove
    .description('Removes the lock with a token, or the locks of a user or on a path.')
    .argument('[TOKEN]', 'the token of one lock, as davgate locks lists it')
    .option('--user <NAME>', 'remove the locks of this user')
    .option(
      '--path <PATH>',
      'remove the locks on this path of the drive and below it; with --user, only those of that user',
    )
    .takeSettings(['config', 'data-dir', 'redis'])
    .addHelpText('after', `${SERVE_OPTIONS_TOO} Here --user names the owner of locks.`)
    .runs(async (token) => {
      const { user, path } = remove.opts<{ user?: string; path?: string }>();
      const choice = {
        ...(token !== undefined && { token }),
        ...(user !== undefined && { user }),
        ...(path !== undefined && { path }),
      };
      return (await import('../locks/locks.ts')).removeLocks(remove.settings, environment, choice);
    });
}

function addJournal(program: CliCommand, { environment, say }: ProgramDeps): void {
  const journal = program
    .command('journal')
    .summary('list and handle pending and lost writes')
    .description(
      'Lists and handles acknowledged writes that are not at the storage service: pending writes, which wait in the journal (--write-mode back), and lost writes in the lost-and-found folder, which the service refused or whose record was lost. Reads the data directory of serve, whether davgate is running or not.',
    )
    .addHelpText(
      'after',
      `
An ID may be shortened while it is unique. A lost write is restored only if nothing exists at its
path; otherwise export it. If davgate is stopped, pending writes are sent at the next start.

Exit code 0: done; 1: not done; 2: the settings or arguments cannot be used.`,
    );
  const load = () => import('../journal/journal.ts');
  const list = journal.addDefault('list', 'list the writes (without a command)');
  list
    .description('Lists pending and lost writes: state, id, time, bytes, path, reason.')
    .takeSettings(['config', 'data-dir'])
    .option('--json', JSON_HELP)
    .runs(async () => {
      const options = { say, isJson: list.has('json') };
      await (await load()).listWrites(list.settings, environment, options);
    });
  const exported = journal.command('export').summary('copy the content of a write to a new file');
  exported
    .description('Copies the content of a write to a new file.')
    .argument('<ID>', 'a write that davgate journal lists')
    .argument('<FILE>', 'the new file')
    .takeSettings(['config', 'data-dir'])
    .runs(async (id = '', file = '') =>
      (await load()).exportWrite(exported.settings, environment, { id, file }),
    );
  const retry = journal.command('retry').summary('send a pending write now, or restore a lost one');
  retry
    .description('Sends a pending write now, or restores a lost one to its path.')
    .argument('<ID>', 'a write that davgate journal lists')
    .takeSettings(['config', 'data-dir'])
    .runs(async (id = '') => (await load()).retryWrite(retry.settings, environment, id));
  const discard = journal.command('discard').summary('delete a write and its content permanently');
  discard
    .description('Deletes a write and its content permanently.')
    .argument('<ID>', 'a write that davgate journal lists')
    .takeSettings(['config', 'data-dir'])
    .runs(async (id = '') => (await load()).discardWrite(discard.settings, environment, id));
}

function addConfig(program: CliCommand, { environment, say }: ProgramDeps): void {
  const config = program
    .command('config')
    .summary('check and show the settings')
    .description('Checks and shows the settings of serve from flags, variables and the configuration file.');
  const load = () => import('../config-commands.ts');
  const check = config.command('check').summary('find all problems of a configuration file');
  check
    .description('Finds all problems of the settings at once, without starting anything.')
    .argument('[FILE]', 'the configuration file; default: the one of --config or DAVGATE_CONFIG')
    .takeSettings(['config'])
    .option('--json', JSON_HELP)
    .addHelpText('after', `${SERVE_OPTIONS_TOO}\nExit code 0: the settings can be used; 1: they cannot.`)
    .runs(async (file) => {
      const options = { say, isJson: check.has('json'), file };
      return (await load()).checkConfig(check.settings, environment, options);
    });
  const show = config
    .command('show')
    .summary('show the settings that are in effect, and where they come from');
  show
    .description('Shows the settings that are in effect, and where each comes from. Secrets are hidden.')
    .takeSettings(['config'])
    .option('--json', JSON_HELP)
    .addHelpText('after', SERVE_OPTIONS_TOO)
    .runs(async () => {
      const options = { say, isJson: show.has('json') };
      await (await load()).showConfig(show.settings, environment, options);
    });
  config
    .command('schema')
    .summary('print the JSON schema of configuration files')
    .description(
      'Prints the JSON schema of configuration files. An editor that knows it completes and checks the keys.',
    )
    .runs(async () => say((await load()).schemaText()));
}
