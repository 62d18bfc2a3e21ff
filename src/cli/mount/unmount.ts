import { ConfigError } from '../../config/settings.ts';
import { gioAddress, MountError, succeed } from './clients.ts';
import type { Machine } from './machine.ts';
import { type MountDeps, type MountOptions, placeOf } from './mount.ts';
import { addressOfDrive } from './target.ts';

/** Unmounts the drive. Returns lines for the person. Throws `MountError`, `ConfigError`. */
export async function unmount(options: MountOptions, deps: MountDeps): Promise<readonly string[]> {
  const { machine } = deps;
  if (machine.platform === 'win32') return [await unmountLetter(options, machine)];
  const folder = placeOf(options, machine);
  const mounts = mountsIn((await succeed(machine, { program: 'mount', args: [] })).output);
  const here = mounts.findLast((candidate) => candidate.folder === folder);
  if (here) return [await unmountFolder(here, machine)];
  if (options.folder !== undefined)
    throw new MountError(`nothing is mounted at ${folder}; mount lists what is`);
  return [await unmountChosen(mounts, options, deps)];
}

interface Mounted {
  readonly source: string;
  readonly folder: string;
  /** The kind of file system; on macOS it is unknown. */
  readonly type: string | undefined;
}

/** Parses the lines of `mount`: `SOURCE on FOLDER type TYPE (…)`, on macOS without the type. */
function mountsIn(output: string): readonly Mounted[] {
  return output.split('\n').flatMap((line) => {
    const [, source, folder, type] = /^(.+?) on (.+?)(?: type (\S+))? \([^()]*\)/.exec(line) ?? [];
    return source !== undefined && folder !== undefined ? [{ source, folder, type }] : [];
  });
}

/** Unmounts a folder. `umount` of davfs2 waits for its uploads; rclone has none left, see `RCLONE_OPTIONS`. */
async function unmountFolder({ folder, type }: Mounted, machine: Machine): Promise<string> {
  const command =
    type === 'fuse.rclone' && !machine.isRoot
      ? { program: 'fusermount3', args: ['-u', folder] }
      : { program: 'umount', args: [folder] };
  await succeed(machine, command);
  return `${folder} was unmounted.`;
}

/** Unmounts the drive where Finder or gio put it. */
async function unmountChosen(
  mounts: readonly Mounted[],
  options: MountOptions,
  { loaded, machine, environment }: MountDeps,
): Promise<string> {
  const url = await addressOfDrive(options.url, loaded, environment);
  const found = mounts.find(({ source }) => source === url || `${source}/` === url);
  if (found) return unmountFolder(found, machine);
  if (!machine.has('gio') || !machine.hasSession)
    throw new MountError(`${url} is not mounted at ${placeOf(options, machine)}; give the folder`);
  // gio accepts the address without the user only if it was mounted without one.
  const { output } = await succeed(machine, { program: 'gio', args: ['mount', '-l'] });
  const address = output.split(/\s+/).find((word) => isAddressOf(word, url));
  if (address === undefined) throw new MountError(`${url} is not mounted; gio mount -l lists what is`);
  await succeed(machine, { program: 'gio', args: ['mount', '-u', address] });
  return `${address} was unmounted.`;
}

function isAddressOf(word: string, url: string): boolean {
  return word.replace(/:\/\/[^@/]*@/, '://') === gioAddress(url, undefined);
}

async function unmountLetter({ folder }: MountOptions, machine: Machine): Promise<string> {
  if (folder === undefined) throw new ConfigError('unmount: the letter is missing; write davgate unmount Z:');
  await succeed(machine, { program: 'net.exe', args: ['use', folder, '/delete'] });
  return `${folder} was unmounted.`;
}
