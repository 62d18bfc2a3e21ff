import type { CliCommand, ProgramDeps } from './cli-command.ts';

/** Adds the commands that mount the drive on this machine. */
export function addMountCommands(program: CliCommand, { environment }: ProgramDeps): void {
  const mount = program.command('mount').summary('mount the drive on this machine');
  mount
    .description('Mounts the drive on this machine with a program that is installed here.')
    .argument(
      '[FOLDER]',
      'where; by default ~/drive, or the place that Finder or gio chooses. On Windows a letter, like Z:',
    )
    .option(
      '--with <CLIENT>',
      'davfs2 (as root), rclone or gio on Linux, finder, mount_webdav or rclone on macOS, "net use" on Windows. By default the first of these that is installed',
    )
    .option('--url <URL>', URL_HELP)
    .takeSettings(SHOWN)
    .addHelpText(
      'after',
      `
The password is that of the settings (--password-file), the one that davgate made up, or is asked
for. It is on no command line. Takes all options of davgate serve too.`,
    )
    .runs(async (folder) => {
      const options = { folder, url: textIn(mount, 'url'), client: textIn(mount, 'with') };
      return (await load()).mountCommand('mount', mount.settings, { options, environment });
    });
  const unmount = program.command('unmount').summary('unmount the drive');
  unmount
    .description('Unmounts the drive. Waits until every change was sent.')
    .argument('[FOLDER]', 'where it is mounted; by default ~/drive, or the place that Finder or gio chose')
    .option('--url <URL>', URL_HELP)
    .takeSettings(SHOWN)
    .addHelpText('after', '\nTakes all options of davgate serve too.')
    .runs(async (folder) => {
      const options = { folder, url: textIn(unmount, 'url') };
      return (await load()).mountCommand('unmount', unmount.settings, { options, environment });
    });
}

const URL_HELP =
  'the drive of a davgate elsewhere, with --user NAME or --no-auth. By default that of the davgate that runs with the same options, variables and configuration file';

const SHOWN = ['config', 'data-dir', 'user', 'password-file', 'no-auth'] as const;

const load = () => import('../mount/command.ts');

/** Returns the value of `--name`; `undefined` without one. */
function textIn(command: CliCommand, name: string): string | undefined {
  const value: unknown = command.values[name];
  return typeof value === 'string' ? value : undefined;
}
