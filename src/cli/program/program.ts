import { Argument } from 'commander';
import { packageVersion } from '../../util/package.ts';
import { CliCommand, type ProgramDeps } from './cli-command.ts';
import { addDriveCommands } from './drive-commands.ts';
import { addMountCommands } from './mount-commands.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

const AFTER = `
Without a command, davgate serves the drive: "davgate serve --help" lists the settings.

Exit codes: 0 success, 1 failure, 2 settings or arguments that cannot be used.`;

/**
 * Returns the command line of davgate. The commands of the storage service are loaded only if `words` begin with
 * `service`, so that a start of the drive does not wait for them; `'all'` loads every command.
 */
export async function createProgram(
  deps: ProgramDeps,
  words: readonly string[] | 'all',
): Promise<CliCommand> {
  const program = new CliCommand('davgate', deps.say)
    .description(
      'davgate makes cloud storage a network drive: a WebDAV server in front of a storage service.',
    )
    .usage('[command] [options]')
    .version(packageVersion(), '-V, --version', 'show the version')
    .helpCommand('help COMMAND', 'show the help of a command')
    .addHelpText('after', AFTER);
  addDriveCommands(program, deps);
  addMountCommands(program, deps);
  addCompletion(program, deps);
  const service = program.command('service').summary('run or manage the storage service alone');
  const [first, second] = words;
  if (words === 'all' || first === 'service' || (first === 'help' && second === 'service'))
    (await import('./service-commands.ts')).addServiceCommands(service, deps);
  return program;
}

function addCompletion(program: CliCommand, deps: ProgramDeps): void {
  const load = () => import('./completion.ts');
  program
    .command('completion')
    .summary('print the completions for a shell')
    .description('Prints a script that completes commands, flags and values of davgate in a shell.')
    .addArgument(new Argument('<SHELL>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
  bash  davgate completion bash > ~/.local/share/bash-completion/completions/davgate
  zsh   davgate completion zsh > "\${fpath[1]}/_davgate"
  fish  davgate completion fish > ~/.config/fish/completions/davgate.fish`,
    )
    .runs(async (shell) => deps.say((await load()).completionScript(shell)));
  // The scripts call it with the words up to the cursor.
  const complete = program.command('complete', { hidden: true });
  complete.isHidden = true;
  complete.argument('[WORD...]').runs(async (...words) => {
    deps.say((await load()).completionsOf(await createProgram(deps, 'all'), words).join('\n'));
  });
}
