import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Command, Machine, Outcome } from '../../../src/cli/mount/machine.ts';
import { mount } from '../../../src/cli/mount/mount.ts';
import { unmount } from '../../../src/cli/mount/unmount.ts';
import type { Setting, SettingName } from '../../../src/config/settings.ts';

/** Needs quoting in every language that a client is told it in. */
const PASSWORD = 'se"cr\\et';

let server: Server;
let url: string;
let home: string;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'davgate-home-'));
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterEach(() => {
  server.close();
  rmSync(home, { recursive: true });
});

/** A machine that records commands and answers each by `outcomes`, with success by default. */
function machineWith(
  platform: NodeJS.Platform,
  programs: readonly string[],
  outcomes: Readonly<Record<string, Partial<Outcome>>> = {},
) {
  const commands: Command[] = [];
  const machine: Machine = {
    platform,
    isRoot: false,
    uid: 1000,
    home,
    hasSession: true,
    has: (program) => programs.includes(program),
    async run(command) {
      commands.push(command);
      const line = [command.program, ...command.args].join(' ');
      const [, outcome] = Object.entries(outcomes).find(([start]) => line.startsWith(start)) ?? [];
      return { code: 0, output: '', ...outcome };
    },
    withPrivateDirectory: (work) => work(home),
  };
  return { machine, commands };
}

function needs(machine: Machine, login: 'login' | 'open' = 'login') {
  const texts: [SettingName, string][] =
    login === 'open'
      ? [['no-auth', 'true']]
      : [
          ['user', 'ann'],
          ['password', PASSWORD],
        ];
  const settings = new Map<SettingName, Setting>(
    texts.map(([name, text]) => [name, { text, origin: `--${name}` }]),
  );
  return { loaded: { settings, file: undefined }, machine, environment: {} };
}

const lines = (commands: readonly Command[]) =>
  commands.map(({ program, args }) => [program, ...args].join(' '));

test('on macOS davgate mount tells osascript user and password on its standard input, for Finder', async () => {
  const { machine, commands } = machineWith('darwin', ['osascript', 'mount_webdav']);
  await mount({ url }, needs(machine));
  expect(commands).toEqual([
    {
      program: 'osascript',
      args: ['-'],
      input: `mount volume "${url}" as user name "ann" with password "se\\"cr\\\\et"\n`,
    },
  ]);
});

test('on macOS davgate mount FOLDER lets mount_webdav ask for the password, and without a login forbids a dialog', async () => {
  const { machine, commands } = machineWith('darwin', ['osascript', 'mount_webdav']);
  const folder = join(home, 'here');
  await mount({ url, folder }, needs(machine));
  await mount({ url, folder }, needs(machine, 'open'));
  expect(lines(commands)).toEqual([
    `mount_webdav -i -v davgate ${url} ${folder}`,
    `mount_webdav -S -v davgate ${url} ${folder}`,
  ]);
  expect(commands.map(({ isInteractive }) => isInteractive)).toEqual([true, false]);
});

test('on macOS davgate unmount finds the volume of Finder by its address', async () => {
  const listed = `/dev/disk1s1 on / (apfs, local)\n${url} on /Volumes/127.0.0.1 (webdav, nodev, noexec)\n`;
  const { machine, commands } = machineWith('darwin', [], { mount: { output: listed } });
  expect(await unmount({ url }, needs(machine))).toEqual(['/Volumes/127.0.0.1 was unmounted.']);
  expect(lines(commands)).toEqual(['mount', 'umount /Volumes/127.0.0.1']);
});

test('on Windows davgate mount lets net use ask for the password, and unmount removes the letter', async () => {
  const { machine, commands } = machineWith('win32', ['net.exe']);
  await mount({ url, folder: 'Z:' }, needs(machine));
  await mount({ url }, needs(machine, 'open'));
  await unmount({ folder: 'Z:' }, needs(machine));
  expect(lines(commands)).toEqual([
    `net.exe use Z: ${url} /user:ann * /persistent:no`,
    `net.exe use * ${url} /persistent:no`,
    'net.exe use Z: /delete',
  ]);
  expect(commands[0]?.isInteractive).toBe(true);
});

test('with a desktop session and no FUSE davgate mount uses gio, with the password on its standard input', async () => {
  const address = url.replace('http://', 'dav://ann@');
  const listed = `Mount(0): ann on 127.0.0.1 -> ${address}\n`;
  const { machine, commands } = machineWith('linux', ['gio'], { 'gio mount -l': { output: listed } });
  await mount({ url }, needs(machine));
  await unmount({ url }, needs(machine));
  expect(lines(commands)).toEqual([
    `gio mount ${address}`,
    'mount',
    'gio mount -l',
    `gio mount -u ${address}`,
  ]);
  expect(commands[0]?.input).toBe(`${PASSWORD}\n`);
});

test('rclone gets the password obscured and in its environment, never in its arguments', async () => {
  const { machine, commands } = machineWith('linux', ['rclone', 'fusermount3'], {
    'rclone obscure': { output: 'OBSCURED\n' },
  });
  await mount({ url, folder: join(home, 'here') }, needs(machine));
  expect(lines(commands)[0]).toBe('rclone obscure -');
  expect(commands[0]?.input).toBe(`${PASSWORD}\n`);
  expect(commands[1]?.environment).toMatchObject({
    RCLONE_WEBDAV_URL: url,
    RCLONE_WEBDAV_USER: 'ann',
    RCLONE_WEBDAV_PASS: 'OBSCURED',
  });
  expect(commands[1]?.args.join(' ')).not.toContain('OBSCURED');
  expect(commands[1]?.args.join(' ')).not.toContain(PASSWORD);
});

test.each([
  [
    'linux',
    ['apt'],
    'no program here can mount the drive; install rclone and its FUSE helper: sudo apt install rclone fuse3',
  ],
  [
    'linux',
    [],
    'no program here can mount the drive; install rclone and its FUSE helper: https://rclone.org/install',
  ],
  [
    'darwin',
    [],
    'no program here can mount the drive; install rclone and macFUSE: brew install rclone macfuse',
  ],
] as const)('on %s with %j alone davgate mount says what to install', async (platform, programs, message) => {
  const { machine } = machineWith(platform, programs);
  await expect(mount({ url }, needs(machine))).rejects.toThrow(message);
});

test('the error of a client that fails has its name and its last line of output', async () => {
  const { machine } = machineWith('linux', ['gio'], {
    'gio mount': { code: 2, output: 'first\ngio: dav://…: HTTP Error: Unauthorized\n' },
  });
  await expect(mount({ url }, needs(machine))).rejects.toThrow(
    'gio failed: gio: dav://…: HTTP Error: Unauthorized',
  );
});
