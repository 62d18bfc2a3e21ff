import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { command, succeed } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, runProgram, startProgram, temporaryDirectory } from '../support/program.ts';

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let home: string;
/** A davgate whose password is the one that it makes up. */
let program: Program;
let password: string;
let authorization: string;
const mounted: string[] = [];

beforeAll(async () => {
  data = await temporaryDirectory();
  home = join(data.path, 'home');
  mkdirSync(home);
  program = await startProgram({ dataDirectory: join(data.path, 'served'), login: 'configured' });
  password = readFileSync(join(data.path, 'served/password'), 'utf8').trim();
  authorization = `Basic ${Buffer.from(`davgate:${password}`).toString('base64')}`;
});
afterEach(async () => {
  for (const folder of mounted.splice(0)) await command('umount', ['-l', folder]);
});
afterAll(async () => {
  await program?.stop();
  await data.remove();
});

/** Runs `davgate mount` or `davgate unmount` for the davgate with this data directory, by default the running one. */
function davgate(args: readonly string[], dataDirectory = 'served') {
  const environment = { ...process.env, HOME: home };
  return runProgram([...args, '--data-dir', join(data.path, dataDirectory)], environment);
}

/** The command lines of all processes of this machine. */
function commandLines(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8');
      } catch {
        return '';
      }
    })
    .join('\n');
}

function isMounted(folder: string): boolean {
  return readFileSync('/proc/self/mounts', 'utf8').includes(` ${folder} `);
}

test.each(['davfs2', 'rclone'])(
  'davgate mount --with %s mounts the running davgate without a password on a command line, and unmount sends every file first',
  async (client) => {
    const folder = join(data.path, client);
    mounted.push(folder);
    const result = await davgate(['mount', folder, '--with', client]);
    expect(result).toEqual({
      code: 0,
      output: `The drive is at ${folder} (${client}).\ndavgate unmount ${folder} unmounts it.\n`,
    });
    expect(isMounted(folder)).toBe(true);
    expect(commandLines()).not.toContain(password);

    const name = `written by ${client}`;
    await writeFile(join(folder, name), 'through the mount');
    expect(await readFile(join(folder, name), 'utf8')).toBe('through the mount');
    expect(await davgate(['unmount', folder])).toEqual({ code: 0, output: `${folder} was unmounted.\n` });
    expect(isMounted(folder)).toBe(false);
    const answer = await fetch(new URL(name, program.url), { headers: { authorization } });
    expect(await answer.text()).toBe('through the mount');
  },
);

test('davgate mount --with gio mounts the running davgate in a desktop session, and unmount finds it by its address', async () => {
  const main = join(PROJECT_ROOT, 'dist/cli/main.js');
  const line = (name: string) => `'${process.execPath}' '${main}' ${name} --data-dir '${data.path}/served'`;
  const address = program.url.replace('http://', 'dav://davgate@');
  const made = `printf content | gio save ${address}made.txt`;
  const script = `${line('mount --with gio')} && ${made} && ${line('unmount')} && gio mount -l`;
  const environment = { HOME: home, XDG_RUNTIME_DIR: home };
  const { stdout } = await succeed('dbus-run-session', ['--', 'sh', '-c', script], { environment });
  expect(stdout).toContain(`The drive is in your file manager, at ${address};`);
  expect(stdout).toContain(`${address} was unmounted.\n`);
  expect(stdout.split('was unmounted.')[1]).not.toContain('127.0.0.1');
  expect(await (await fetch(`${program.url}made.txt`, { headers: { authorization } })).text()).toBe(
    'content',
  );
});

test('davgate mount without a folder mounts at ~/drive, and davgate unmount finds it there', async () => {
  const folder = join(home, 'drive');
  mounted.push(folder);
  const { code, output } = await davgate(['mount']);
  expect([code, output]).toEqual([0, expect.stringContaining(`The drive is at ${folder} (`)]);
  expect(isMounted(folder)).toBe(true);
  expect((await davgate(['unmount'])).code).toBe(0);
  await eventually(() => expect(isMounted(folder)).toBe(false));
});

test('davgate mount --url mounts a davgate elsewhere with the user and password of the settings', async () => {
  const folder = join(data.path, 'elsewhere');
  mounted.push(folder);
  const file = join(data.path, 'secret');
  writeFileSync(file, `${password}\n`, { mode: 0o600 });
  const login = ['--user', 'davgate', '--password-file', file];
  const words = ['mount', folder, '--with', 'davfs2', '--url', program.url, ...login];
  expect((await runProgram(words)).code).toBe(0);
  await writeFile(join(folder, 'there.txt'), 'x');
  expect((await runProgram(['unmount', folder])).code).toBe(0);
  expect((await fetch(`${program.url}there.txt`, { headers: { authorization } })).status).toBe(200);
});

test('davgate mount of a drive without a login asks for no password', async () => {
  const open = await startProgram({ dataDirectory: join(data.path, 'open'), login: false });
  const folder = join(data.path, 'without a login');
  mounted.push(folder);
  expect((await davgate(['mount', folder, '--with', 'rclone', '--no-auth'], 'open')).code).toBe(0);
  await writeFile(join(folder, 'open.txt'), 'x');
  expect((await davgate(['unmount', folder], 'open')).code).toBe(0);
  expect((await fetch(`${open.url}open.txt`)).status).toBe(200);
  await open.stop();
});

test('davgate mount with a wrong password fails with the reason of the client and mounts nothing', async () => {
  const folder = join(data.path, 'refused');
  const words = ['mount', folder, '--with', 'davfs2', '--url', program.url, '--user', 'davgate'];
  const { code, output } = await runProgram(words, { ...process.env, DAVGATE_PASSWORD: 'wrong' });
  expect([code, output]).toEqual([1, expect.stringMatching(/^davgate: mount failed: .*uthenticat/)]);
  expect(output).not.toContain('wrong');
  expect(isMounted(folder)).toBe(false);
});

// test/unit/cli/program.test.ts tests wrong usages without a process for each.
test.each([
  [
    ['--listen', '127.0.0.1:0'],
    /^davgate: no davgate runs with .*; start one with davgate serve, or give --url\n$/,
  ],
  [['--listen', '127.0.0.1:1'], /^davgate: nothing answers at http:\/\/127\.0\.0\.1:1\/ \(ECONNREFUSED\)/],
])('davgate mount FOLDER %j ends with exit code 1 and a line that says what to do', async (args, message) => {
  const result = await davgate(['mount', join(data.path, 'mount'), ...args], 'nothing');
  expect([result.code, result.output]).toEqual([1, expect.stringMatching(message)]);
});

test('davgate unmount of a folder where nothing is mounted ends with exit code 1', async () => {
  const folder = join(data.path, 'nothing');
  expect(await davgate(['unmount', folder])).toEqual({
    code: 1,
    output: `davgate: nothing is mounted at ${folder}; mount lists what is\n`,
  });
});
