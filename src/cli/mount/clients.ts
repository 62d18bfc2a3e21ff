import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command, Machine } from './machine.ts';

/** A drive to mount. */
export interface Drive {
  /** With a slash at the end. */
  readonly url: string;
  /** `undefined`: no login is needed. */
  readonly login: { readonly user: string; readonly password: string } | undefined;
}

/** Mounting or unmounting failed; `message` is one line that says why and what to do. */
export class MountError extends Error {
  override readonly name = 'MountError';
}

/** A program that mounts WebDAV. */
export interface MountClient {
  readonly name: string;
  readonly platform: NodeJS.Platform;
  /** Whether it is installed here, and this user may mount with it. */
  isUsable(machine: Machine): boolean;
  /** Whether it chooses the place of the drive itself. */
  readonly choosesPlace: boolean;
  /** Mounts `drive`. Returns a sentence that says where it is. Throws `MountError`. */
  mount(drive: Drive, folder: string, machine: Machine): Promise<string>;
}

/** Options that rclone needs as a drive of a desktop, see docs/mount/linux.md. */
const RCLONE_OPTIONS = [
  // Editors open files for reading and writing at once.
  ...['--vfs-cache-mode', 'writes'],
  // close() sends the file and tells the program if that failed; nothing waits when the drive is unmounted.
  ...['--vfs-write-back', '0s'],
  // davgate answers listings from memory, so that changes made elsewhere may show soon.
  ...['--dir-cache-time', '5s'],
];

/** Clients, best first. */
export const CLIENTS: readonly MountClient[] = [
  {
    name: 'davfs2',
    platform: 'linux',
    choosesPlace: false,
    isUsable: ({ isRoot, has }) => isRoot && has('mount.davfs'),
    mount: (drive, folder, machine) =>
      machine.withPrivateDirectory(async (directory) => {
        const configuration = join(directory, 'davfs2.conf');
        const secrets = join(directory, 'secrets');
        await writeFile(secrets, davfsSecret(drive), { mode: 0o600 });
        // buf_size: at its default every folder looks empty with davfs2 1.6 and a recent kernel.
        // delay_upload: a file is sent when it is closed, instead of 10 s later.
        const lines = ['buf_size 1024', 'delay_upload 0', 'ask_auth 0', `secrets ${secrets}`];
        await writeFile(configuration, `${lines.join('\n')}\n`, { mode: 0o600 });
        const options = `conf=${configuration},uid=${machine.uid}`;
        await succeed(machine, { program: 'mount', args: ['-t', 'davfs', '-o', options, drive.url, folder] });
        return `The drive is at ${folder} (davfs2).`;
      }),
  },
  {
    name: 'rclone',
    platform: 'linux',
    choosesPlace: false,
    isUsable: ({ has }) => has('rclone') && has('fusermount3'),
    mount: mountRclone,
  },
  {
    name: 'gio',
    platform: 'linux',
    choosesPlace: true,
    isUsable: ({ has, hasSession }) => has('gio') && hasSession,
    async mount({ url, login }, _folder, machine) {
      const address = gioAddress(url, login?.user);
      const input = login && { input: `${login.password}\n` };
      await succeed(machine, { program: 'gio', args: ['mount', address], ...input });
      return `The drive is in your file manager, at ${address}; other programs find it below $XDG_RUNTIME_DIR/gvfs/ (gio).`;
    },
  },
  {
    name: 'finder',
    platform: 'darwin',
    choosesPlace: true,
    isUsable: ({ has }) => has('osascript'),
    async mount({ url, login }, _folder, machine) {
      const as = login
        ? ` as user name ${appleText(login.user)} with password ${appleText(login.password)}`
        : '';
      await succeed(machine, {
        program: 'osascript',
        args: ['-'],
        input: `mount volume ${appleText(url)}${as}\n`,
      });
      return 'The drive is in the sidebar of Finder, under Locations, and below /Volumes.';
    },
  },
  {
    name: 'mount_webdav',
    platform: 'darwin',
    choosesPlace: false,
    isUsable: ({ has }) => has('mount_webdav'),
    async mount({ url, login }, folder, machine) {
      // It takes a password only from the terminal (-i). -S: without a dialog.
      const args = [login ? '-i' : '-S', '-v', 'davgate', url, folder];
      if (login) process.stderr.write(`mount_webdav asks for the user (${login.user}) and the password.\n`);
      await succeed(machine, { program: 'mount_webdav', args, isInteractive: login !== undefined });
      return `The drive is at ${folder} (mount_webdav).`;
    },
  },
  {
    name: 'rclone',
    platform: 'darwin',
    choosesPlace: false,
    isUsable: ({ has }) => has('rclone'),
    mount: mountRclone,
  },
  {
    name: 'net use',
    platform: 'win32',
    choosesPlace: false,
    isUsable: ({ has }) => has('net.exe'),
    async mount({ url, login }, letter, machine) {
      // "*" at the end: net use asks for the password, so that it is on no command line.
      const args = ['use', letter, url, ...(login ? [`/user:${login.user}`, '*'] : []), '/persistent:no'];
      await succeed(machine, { program: 'net.exe', args, isInteractive: true });
      return 'The drive is in Explorer, under This PC (net use).';
    },
  },
];

/** How to install rclone with FUSE, by the program that installs packages. */
const INSTALLERS = [
  ['apt', 'apt install rclone fuse3'],
  ['dnf', 'dnf install rclone fuse3'],
  ['pacman', 'pacman -S rclone fuse3'],
  ['zypper', 'zypper install rclone fuse3'],
  ['apk', 'apk add rclone fuse3'],
] as const;

/** Returns what to install where no client, or not the `wanted` one, can be used. */
export function nothingInstalled(wanted: string | undefined, { platform, isRoot, has }: Machine): string {
  if (platform === 'darwin')
    return `no program here can mount the drive${wanted === undefined ? '' : ` as ${wanted}`}; install rclone and macFUSE: brew install rclone macfuse`;
  if (platform === 'win32') return 'net.exe is missing; it is a part of Windows, in System32';
  if (wanted === 'davfs2' && !isRoot)
    return 'davfs2 mounts only as root; run this with sudo, or use --with rclone';
  if (wanted === 'davfs2') return 'davfs2 is not installed; install it: apt install davfs2';
  if (wanted === 'gio') return 'gio needs a desktop session; run this in one, or use --with rclone';
  const [, line] = INSTALLERS.find(([program]) => has(program)) ?? [];
  return `no program here can mount the drive; install rclone and its FUSE helper${line === undefined ? ': https://rclone.org/install' : `: sudo ${line}`}`;
}

async function mountRclone({ url, login }: Drive, folder: string, machine: Machine): Promise<string> {
  return machine.withPrivateDirectory(async (directory) => {
    const log = join(directory, 'log');
    const environment: Record<string, string> = {
      RCLONE_WEBDAV_URL: url,
      RCLONE_WEBDAV_VENDOR: 'owncloud',
      RCLONE_LOG_FILE: log,
    };
    if (login) {
      const args = ['obscure', '-'];
      const { output } = await succeed(machine, { program: 'rclone', args, input: `${login.password}\n` });
      environment['RCLONE_WEBDAV_USER'] = login.user;
      environment['RCLONE_WEBDAV_PASS'] = output.trim();
    }
    // An empty --config: rclone's own configuration may ask for a password, and is not needed.
    const own = ['--config', '', '--devname', url];
    const args = ['mount', ':webdav:', folder, ...RCLONE_OPTIONS, ...own, '--daemon'];
    const { code } = await machine.run({ program: 'rclone', args, environment, leavesDaemon: true });
    if (code !== 0) throw failureOf('rclone', code, await textOf(log));
    return `The drive is at ${folder} (rclone).`;
  });
}

/** Runs a command. Throws `MountError` with the last line of its output if it fails. */
export async function succeed(machine: Machine, command: Command) {
  const outcome = await machine.run(command);
  if (outcome.code !== 0) throw failureOf(command.program, outcome.code, outcome.output);
  return outcome;
}

function failureOf(program: string, code: number | null, output: string): MountError {
  const reason = output.trim().split('\n').at(-1)?.trim() || `it ended with ${code ?? 'a signal'}`;
  return new MountError(`${program} failed: ${reason}`);
}

async function textOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '');
}

/** The line of a login in the secrets file of davfs2(5), whose words may be quoted. */
function davfsSecret({ url, login }: Drive): string {
  if (!login) return '';
  const quoted = (word: string) => `"${word.replaceAll(/["\\]/g, '\\$&')}"`;
  return `${[url, login.user, login.password].map(quoted).join(' ')}\n`;
}

function appleText(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** Returns the address of a drive for gio: `dav://ann@127.0.0.1:8765/`. */
export function gioAddress(url: string, user: string | undefined): string {
  const address = url.replace(/^http/, 'dav');
  return user === undefined ? address : address.replace('://', `://${encodeURIComponent(user)}@`);
}
