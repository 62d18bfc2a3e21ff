import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command } from '../support/command.ts';
import { runProgram, spawnProgram, startProgram } from '../support/program.ts';
import { freePort } from '../support/redis.ts';

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'davgate-command-'));
});
afterAll(() => rm(home, { recursive: true, force: true }));

/** A start that must fail: exit code 2 and one line that names the trouble. */
async function refused(...args: string[]): Promise<string> {
  const { code, output } = await runProgram([
    '--listen',
    '127.0.0.1:0',
    '--data-dir',
    join(home, 'data'),
    ...args,
  ]);
  expect(output.trim().split('\n')).toHaveLength(1);
  expect(code).toBe(2);
  return output;
}

describe('what davgate cannot start with: exit code 2, one line that names it and the mend', () => {
  test('a wrong value', async () => {
    expect(await refused('--delete', 'never')).toBe(
      'davgate: --delete: "never" is not one of auto, permanent, trash\n',
    );
  });

  test('an unknown flag, an unknown command, an unknown variable', async () => {
    expect(await refused('--lisen', 'x')).toMatch(/--lisen: no such option; davgate --help lists them/);
    expect((await runProgram(['mount'])).output).toMatch(/mount: no such command; davgate --help lists them/);
    const { code, output } = await runProgram([], { ...process.env, DAVGATE_LISTN: 'x' });
    expect([code, output]).toEqual([2, expect.stringMatching(/^davgate: DAVGATE_LISTN: no such setting/)]);
  });

  test('an unknown key in a file', async () => {
    const file = join(home, 'config.json');
    await writeFile(file, '{"lisen": "x"}');
    expect(await refused('--config', file)).toContain(`"lisen" in ${file}: no such setting`);
  });

  test('a Redis that is not there, without its password', async () => {
    const port = await freePort();
    const output = await refused('--redis', `redis://ann:SECRET@127.0.0.1:${port}`);
    expect(output).toBe(
      `davgate: cannot use the shared state in redis://ann:***@127.0.0.1:${port}: nothing listens there; start Redis, or correct the address\n`,
    );
    expect(await refused('--redis', 'localhost:SECRET')).toMatch(
      /^davgate: --redis: not the address of a Redis/,
    );
  });

  test('a port in use', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const address = holder.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const { code, output } = await runProgram([
      '--listen',
      `127.0.0.1:${port}`,
      '--data-dir',
      join(home, 'data'),
    ]);
    holder.close();
    expect(output).toContain(`127.0.0.1:${port}`);
    expect(output).toMatch(/another program uses that port; .*--listen/);
    expect(output.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(2);
  });

  test('an address that is not this machine’s', async () => {
    const { code, output } = await runProgram([
      '--listen',
      '203.0.113.1:8765',
      '--data-dir',
      join(home, 'data'),
    ]);
    expect([code, output]).toEqual([2, expect.stringMatching(/203\.0\.113\.1.*--listen/)]);
  });

  test('an unwritable data directory', async () => {
    // Not even root writes below a file.
    const file = join(home, 'a-file');
    await writeFile(file, '');
    const { code, output } = await runProgram(['--listen', '127.0.0.1:0', '--data-dir', join(file, 'data')]);
    expect([code, output.trim().split('\n').length]).toEqual([2, 1]);
    expect(output).toMatch(/a-file\/data.*--data-dir/);
  });

  test('a folder where none can ever be made', async () => {
    const nowhere = '/proc/davgate/data';
    const line = (output: string, flag: string) =>
      expect(output).toMatch(new RegExp(`^davgate: .*${nowhere}.*${flag}.*\n$`));
    const gateway = await runProgram(['--listen', '127.0.0.1:0', '--data-dir', nowhere]);
    expect(gateway.code).toBe(2);
    line(gateway.output, '--data-dir');
    for (const words of [
      ['service'],
      ['service', 'account', 'create', 'ann@example.org'],
      ['service', 'check'],
    ]) {
      const { code, output } = await runProgram([...words, '--data', nowhere]);
      expect([code, words]).toEqual([2, words]);
      line(output, 'folder');
    }
  });

  test('a password that cannot be kept', async () => {
    const dataDirectory = join(home, 'no-password');
    await mkdir(join(dataDirectory, 'password'), { recursive: true });
    const { code, output } = await runProgram(['--listen', '127.0.0.1:0', '--data-dir', dataDirectory]);
    expect([code, output.trim().split('\n').length]).toEqual([2, 1]);
    expect(output).toMatch(
      /cannot store the made-up password in \S+no-password\/password \(EISDIR\); .*--password/,
    );
  });

  test('a token that no header can carry, without the token', async () => {
    const { code, output } = await runProgram([], { ...process.env, DAVGATE_TOKEN: 'SECRET\r' });
    expect([code, output.trim().split('\n').length]).toEqual([2, 1]);
    expect(output).toMatch(/^davgate: DAVGATE_TOKEN: (?!.*SECRET)/);
  });

  test('a data directory that another davgate uses', async () => {
    const dataDirectory = join(home, 'shared');
    await mkdir(dataDirectory);
    const first = await startProgram({ dataDirectory });
    const { code, output } = await runProgram(['--listen', '127.0.0.1:0', '--data-dir', dataDirectory]);
    expect([code, output.trim().split('\n').length]).toEqual([2, 1]);
    expect(output).toMatch(/another davgate is using .*--data-dir/);
    expect(await first.stop()).toBe(0);
  });

  test('a certificate that cannot be read', async () => {
    expect(await refused('--tls-cert', '/no/cert', '--tls-key', '/no/key')).toMatch(/\/no\/cert/);
  });
});

describe('a start with nothing said', () => {
  test('makes a password, tells its file and how to mount, and keeps it over a restart', async () => {
    const dataDirectory = join(home, 'fresh');
    const environment = { ...process.env, XDG_DATA_HOME: dataDirectory, XDG_CACHE_HOME: join(home, 'cache') };
    const passwords = [];
    for (let start = 0; start < 2; start++) {
      const { child, output } = spawnProgram(['--listen', '127.0.0.1:0'], environment);
      while (!output().includes('Ctrl+C')) await once(child.stdout ?? child, 'data');
      const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(output())?.[0] ?? '';
      const file = /password +in (\S+)/.exec(output())?.[1] ?? '';
      const password = (await readFile(file, 'utf8')).trim();
      passwords.push(password);
      for (const system of ['macOS', 'Windows', 'Linux', 'rclone']) expect(output()).toContain(system);
      const { stdout } = await command('curl', [
        '-sS',
        '-u',
        `davgate:${password}`,
        '-X',
        'PROPFIND',
        '-o',
        '/dev/null',
        '-w',
        '%{http_code}',
        url,
      ]);
      expect(stdout).toBe('207');
      // The line for rclone, as a shell reads it, listing in place of mounting.
      const line = /^ +rclone +(rclone mount .*)$/m.exec(output())?.[1] ?? '';
      const listing = line.replace('mount :webdav: ~/drive', 'lsf :webdav:').replace('PASSWORD', password);
      expect((await command('sh', ['-c', listing])).code, listing).toBe(0);
      child.kill('SIGTERM');
      const [code] = (await once(child, 'close')) as [number | null]; // 'close' hands on the exit code
      expect(code).toBe(0);
    }
    expect(passwords[0]).toHaveLength(20);
    expect(passwords[1]).toBe(passwords[0]);
  });

  test('a login is asked for, and no secret reaches the log', async () => {
    const program = await startProgram({ dataDirectory: join(home, 'login') });
    const without = await fetch(program.url, { method: 'PROPFIND' });
    expect(without.status).toBe(401);
    expect(without.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
    const wrong = await fetch(program.url, {
      headers: { authorization: `Basic ${Buffer.from('tester:wrong').toString('base64')}` },
    });
    expect(wrong.status).toBe(401);
    const right = await fetch(program.url, { headers: { authorization: program.authorization } });
    expect(right.status).toBe(200);
    expect(await program.stop()).toBe(0);
    expect(program.output()).not.toContain(program.password);
    expect(program.output()).not.toContain(program.authorization.slice(6));
  });
});

test('without a login it answers to its address, and not to a name that a web page may have given it', async () => {
  const program = await startProgram({ dataDirectory: join(home, 'rebinding'), login: false });
  expect((await fetch(program.url)).status).toBe(200);
  const as = ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '-H', 'Host: evil.example', program.url];
  expect((await command('curl', as)).stdout).toBe('421');
  expect(await program.stop()).toBe(0);
});

test('goes on when nobody reads its log any more, as after `davgate | tee` and Ctrl+C', async () => {
  const { child, output } = spawnProgram([
    ...['--listen', '127.0.0.1:0', '--data-dir', join(home, 'unread'), '--no-auth'],
  ]);
  while (!output().includes('Ctrl+C')) await once(child.stdout ?? child, 'data');
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(output())?.[0] ?? '';
  child.stderr?.destroy();
  child.stdout?.destroy();
  // Each is a line of the log.
  for (let number = 0; number < 3; number++)
    expect((await fetch(`${url}${number}`, { method: 'PUT', body: 'x' })).status).toBe(201);
  child.kill('SIGTERM');
  const [code] = (await once(child, 'close')) as [number | null]; // 'close' hands on the exit code
  expect(code).toBe(0);
});

describe('davgate hash-password', () => {
  const hashing = (input: string, ...args: string[]) =>
    command(process.execPath, ['dist/cli/main.js', 'hash-password', ...args], { input });

  test('prints a hash of the one line that it reads', async () => {
    expect(await hashing('secret\n')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^scrypt\$\S+\n$/),
    });
    expect(await hashing('', '--help')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Usage: '),
    });
  });

  test.each([
    ['', [], 'standard input contains no password'],
    ['\n', [], 'standard input contains no password'],
    ['a\tb\n', [], 'contains a control character'],
    ['', ['secret'], 'takes no arguments'],
  ])('of %j with %j it says what is wrong', async (input, args, message) => {
    const { code, output } = await hashing(input, ...args);
    expect(code).toBe(2);
    expect(output).toMatch(new RegExp(`^davgate: hash-password: ${message}(?!.*secret)[^\\n]*\\n$`));
  });
});

test.each(['--help', '-h', 'help'])('%s lists the options, with exit code 0', async (word) => {
  const help = await runProgram([word]);
  expect([help.code, help.output]).toEqual([0, expect.stringContaining('--listen HOST:PORT')]);
});

test.each(['--version', '-V', 'version'])('%s prints the version, with exit code 0', async (word) => {
  const version = await runProgram([word]);
  expect([version.code, version.output]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
});

test('a command whose output nobody reads any more ends without a stack trace', async () => {
  const { child, output } = spawnProgram(['login', '--app-key', 'key', '--data-dir', join(home, 'head')]);
  child.stdout?.destroy();
  const [code] = (await once(child, 'close')) as [number | null]; // 'close' hands on the exit code
  expect([code, output()]).toEqual([1, 'davgate: no code was pasted; run davgate login again\n']);
});

test('several users each see the root of their own drive, and the start says whose login is asked for', async () => {
  const file = join(home, 'users.json');
  const { stdout } = await command(process.execPath, ['dist/cli/main.js', 'hash-password'], {
    input: 'bobs word\n',
  });
  const users = [
    { name: 'ann', password: 'anns word', drive: 'one' },
    { name: 'bob', 'password-hash': stdout.trim(), drive: 'two' },
  ];
  await writeFile(file, JSON.stringify({ drives: { one: { root: '/Ann' }, two: { root: '/Bob' } }, users }));
  const { child, output } = spawnProgram([
    ...['--config', file, '--listen', '127.0.0.1:0', '--data-dir', join(home, 'two drives')],
  ]);
  while (!output().includes('Ctrl+C')) await once(child.stdout ?? child, 'data');
  expect(output()).toContain(`login     as the 2 users of ${file}\n`);
  expect(output()).toContain('/user:USER');
  expect(output()).not.toContain('without a login');
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(output())?.[0] ?? '';
  const as = (login: string) => ({ authorization: `Basic ${Buffer.from(login).toString('base64')}` });
  const put = await fetch(`${url}mine`, { method: 'PUT', headers: as('ann:anns word'), body: 'of ann' });
  expect(put.status).toBe(201);
  expect((await fetch(`${url}mine`, { headers: as('bob:bobs word') })).status).toBe(404);
  expect(await (await fetch(`${url}mine`, { headers: as('ann:anns word') })).text()).toBe('of ann');
  expect((await fetch(`${url}mine`, { headers: as('bob:anns word') })).status).toBe(401);
  child.kill('SIGTERM');
  await once(child, 'close');
});
