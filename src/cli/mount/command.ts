import { ConfigError } from '../../config/settings.ts';
import { settingsOfArguments } from '../arguments.ts';
import { loadSettings } from '../load-settings.ts';
import { MountError } from './clients.ts';
import { thisMachine } from './machine.ts';
import { type MountOptions, mount } from './mount.ts';
import { unmount } from './unmount.ts';

const HELP = `Mounts the drive on this machine with a program that is installed here.

Usage: davgate mount [FOLDER] [--with CLIENT] [--url URL] [options of serve]
       davgate unmount [FOLDER] [--url URL] [options of serve]

  FOLDER         where; by default ~/drive, or the place that Finder or gio chooses. On Windows a letter, like Z:
  --with CLIENT  davfs2 (as root), rclone or gio on Linux, finder, mount_webdav or rclone on macOS, "net use" on Windows.
                 By default the first of these that is installed
  --url URL      the drive of a davgate elsewhere, with --user NAME or --no-auth. By default that of the davgate that runs
                 with the same options, variables and configuration file

The password is that of the settings (--password-file), the one that davgate made up, or is asked for. It is on no command
line. unmount waits until every change was sent.
`;

/** `davgate mount` and `davgate unmount`. Returns the exit code. */
export async function mountCommand(
  command: 'mount' | 'unmount',
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(HELP);
    return 0;
  }
  const { rest, ...options } = optionsIn(args);
  const loaded = await loadSettings(settingsOfArguments(rest), environment);
  const work = command === 'mount' ? mount : unmount;
  try {
    for (const line of await work(options, { loaded, machine: thisMachine(environment), environment }))
      console.log(line);
    return 0;
  } catch (error) {
    if (!(error instanceof MountError)) throw error;
    process.stderr.write(`davgate: ${error.message}\n`);
    return 1;
  }
}

/** Separates the arguments of mount from the options of serve. */
function optionsIn(args: readonly string[]): MountOptions & { readonly rest: readonly string[] } {
  const words = [...args];
  const folder = words[0]?.startsWith('-') === false ? words.shift() : undefined;
  const taken = new Map<string, string>();
  const rest: string[] = [];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [, name, joined] = /^--(url|with)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === undefined) {
      rest.push(word);
      continue;
    }
    const value = joined ?? words.shift();
    if (!value) throw new ConfigError(`--${name}: a value is missing`);
    taken.set(name, value);
  }
  return { folder, url: taken.get('url'), client: taken.get('with'), rest };
}
