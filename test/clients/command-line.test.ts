import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command } from '../support/command.ts';
import { freePort } from '../support/free-port.ts';
import {
  cheapHash,
  matchOutput,
  type Program,
  runProgram,
  spawnProgram,
  startProgram,
} from '../support/program.ts';

let home: string;
/** A davgate with a login, shared by the tests that leave it running. */
let program: Program;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'davgate-command-'));
  program = await startProgram({ dataDirectory: join(home, 'served') });
});
afterAll(async () => {
  await program?.stop();
  await rm(home, { recursive: true, force: true });
});

/** Runs a start that must fail with exit code 2 and one line of output, and returns that line. */
async function refused(...args: string[]): Promise<string> {
  const listen = args.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
  const directory = args.includes('--data-dir') ? [] : ['--data-dir', join(home, 'data')];
  const { code, output } = await runProgram([...listen, ...directory, ...args]);
  expect([code, output.trim().split('\n').length]).toEqual([2, 1]);
  return output;
}

// test/unit/config/configuration.test.ts tests the other refused settings without a process for each.
describe('a start that fails', () => {
  test('a setting with a wrong value ends the start with exit code 2 and one line that names it', async () => {
    expect(await refused('--delete', 'never')).toBe(
      'davgate: --delete: "never" is not one of auto, permanent, trash\n',
    );
  });

  test('an unknown command ends with exit code 2 and a pointer to davgate --help', async () => {
    const { code, output } = await runProgram(['hurry']);
    expect([code, output]).toEqual([2, 'davgate: hurry: no such command; davgate --help lists them\n']);
  });

  test('an unknown variable of davgate ends the start with exit code 2 and its name', async () => {
    const { code, output } = await runProgram([], { ...process.env, DAVGATE_LISTN: 'x' });
    expect([code, output]).toEqual([2, expect.stringMatching(/^davgate: DAVGATE_LISTN: no such setting/)]);
  });

  test('a Redis that does not listen ends the start with its address, without the password', async () => {
    const port = await freePort();
    const output = await refused('--redis', `redis://ann:SECRET@127.0.0.1:${port}`, '--token', 't');
    expect(output).toBe(
      `davgate: cannot use the shared state in redis://ann:***@127.0.0.1:${port}: nothing listens there; start Redis, or correct the address\n`,
    );
  });

  test('a Redis beside the embedded service ends the start and davgate doctor with the reason', async () => {
    const reason =
      /^davgate: --redis: the files are in the embedded service, .* give all gateways its --api-url/;
    expect(await refused('--redis', 'redis://127.0.0.1')).toMatch(reason);
    const { code, output } = await runProgram(['doctor', '--data-dir', home, '--redis', 'redis://127.0.0.1']);
    expect([code, output]).toEqual([2, expect.stringMatching(reason)]);
  });

  test('a port in use ends the start with the port and the name of the option', async () => {
    const output = await refused('--listen', new URL(program.url).host);
    expect(output).toContain(new URL(program.url).host);
    expect(output).toMatch(/another program uses that port; .*--listen/);
  });

  test('a listen address of another machine ends the start with the address and the name of the option', async () => {
    expect(await refused('--listen', '203.0.113.1:8765')).toMatch(/203\.0\.113\.1.*--listen/);
  });

  test('an unwritable data directory ends the start with its path and the name of the option', async () => {
    // Not even root writes below a file.
    const file = join(home, 'a-file');
    await writeFile(file, '');
    expect(await refused('--data-dir', join(file, 'data'))).toMatch(/a-file\/data.*--data-dir/);
  });

  test('a data directory that cannot be created ends davgate and each command of the service', async () => {
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

  test('a generated password that cannot be stored ends the start with its path and the reason', async () => {
    const dataDirectory = join(home, 'no-password');
    await mkdir(join(dataDirectory, 'password'), { recursive: true });
    expect(await refused('--data-dir', dataDirectory)).toMatch(
      /cannot store the made-up password in \S+no-password\/password \(EISDIR\); .*--password/,
    );
  });

  test('a token with a line break ends the start, and the message does not contain the token', async () => {
    const { code, output } = await runProgram([], { ...process.env, DAVGATE_TOKEN: 'SECRET\r' });
    expect([code, output.trim().split('\n').length]).toEqual([2, 1]);
    expect(output).toMatch(/^davgate: DAVGATE_TOKEN: (?!.*SECRET)/);
  });

  test('a data directory of a running davgate ends the start of a second one', async () => {
    expect(await refused('--data-dir', join(home, 'served'))).toMatch(
      /another davgate is using .*--data-dir/,
    );
  });

  test('a certificate that cannot be read ends the start with its path', async () => {
    expect(await refused('--tls-cert', '/no/cert', '--tls-key', '/no/key')).toMatch(/\/no\/cert/);
  });
});

describe('logins', () => {
  test('a start without settings makes a password, prints its file and how to mount, and keeps the password over a restart', async () => {
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
      if (start === 0) {
        // The printed line for rclone, run by a shell, with a listing in place of the mount.
        const line = /^ +rclone +(rclone mount .*)$/m.exec(output())?.[1] ?? '';
        const list = line.replace('mount :webdav: ~/drive --vfs-cache-mode writes', 'lsf :webdav:');
        const listing = list.replace('PASSWORD', password);
        expect((await command('sh', ['-c', listing])).code, listing).toBe(0);
      }
      child.kill('SIGTERM');
      const [code] = (await once(child, 'close')) as [number | null]; // 'close' passes the exit code
      expect(code).toBe(0);
      expect(output()).not.toContain(password);
      expect(output()).not.toContain(Buffer.from(`davgate:${password}`).toString('base64'));
    }
    expect(passwords[0]).toHaveLength(20);
    expect(passwords[1]).toBe(passwords[0]);
  });

  test('a request without the right login gets 401, and no password reaches the log', async () => {
    const { authorization, password } = program;
    const without = await fetch(program.url, { method: 'PROPFIND' });
    expect(without.status).toBe(401);
    expect(without.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
    const wrong = await fetch(program.url, {
      headers: { authorization: `Basic ${Buffer.from('tester:wrong').toString('base64')}` },
    });
    expect(wrong.status).toBe(401);
    expect((await fetch(program.url, { headers: { authorization } })).status).toBe(200);
    expect(program.output()).not.toContain(password);
    expect(program.output()).not.toContain(authorization.slice(6));
  });
});

test('davgate --no-auth answers 421 to a foreign Host, as DNS rebinding by a web page sends, and keeps serving when its output is closed, as after `davgate | tee` and Ctrl+C', async () => {
  const { child, output } = spawnProgram([
    ...['--listen', '127.0.0.1:0', '--data-dir', join(home, 'unread'), '--no-auth'],
  ]);
  while (!output().includes('Ctrl+C')) await once(child.stdout ?? child, 'data');
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(output())?.[0] ?? '';
  expect((await fetch(url)).status).toBe(200);
  const as = ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '-H', 'Host: evil.example', url];
  expect((await command('curl', as)).stdout).toBe('421');

  child.stderr?.destroy();
  child.stdout?.destroy();
  // Each request writes a line to the log.
  for (let number = 0; number < 3; number++)
    expect((await fetch(`${url}${number}`, { method: 'PUT', body: 'x' })).status).toBe(201);
  child.kill('SIGTERM');
  const [code] = (await once(child, 'close')) as [number | null]; // 'close' passes the exit code
  expect(code).toBe(0);
});

describe('davgate hash-password', () => {
  const hashing = (input: string) =>
    command(process.execPath, ['dist/cli/main.js', 'hash-password'], { input });

  test('hash-password prints a hash of the line on standard input', async () => {
    expect(await hashing('secret\n')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^scrypt\$\S+\n$/),
    });
  });

  test.each([
    ['', 'standard input contains no password'],
    ['\n', 'standard input contains no password'],
    ['a\tb\n', 'contains a control character'],
  ])('hash-password with input %j ends with exit code 2 and the reason', async (input, message) => {
    const { code, output } = await hashing(input);
    expect(code).toBe(2);
    expect(output).toMatch(new RegExp(`^davgate: hash-password: ${message}(?!.*secret)[^\\n]*\\n$`));
  });
});

// test/unit/cli/program.test.ts tests the other spellings.
test('davgate --help lists the commands, with exit code 0', async () => {
  const help = await runProgram(['--help']);
  expect([help.code, help.output]).toEqual([0, expect.stringContaining('hash a password')]);
});

test('davgate whose help is read by head ends with exit code 0 and without an error', async () => {
  const program = 'node dist/cli/main.js serve --help; echo "code $?" >&2';
  const { output } = await command('sh', ['-c', `(${program}) | head -1`]);
  expect(output.split('\n').sort()).toEqual(['', 'Usage: davgate serve [options]', 'code 0']);
});

test('davgate --json prints one line of JSON when it is ready, with the address that serves', async () => {
  const { child, output } = spawnProgram([
    ...['--listen', '127.0.0.1:0', '--data-dir', join(home, 'json'), '--json'],
    ...['--log-format', 'json', '--log-requests', 'off'],
  ]);
  const line = await matchOutput(child, output, /^\{"url".*\}$/m);
  const ready: unknown = JSON.parse(line);
  expect(ready).toEqual({
    url: expect.stringMatching(/^http:/),
    otherUrls: [],
    certificateNames: [],
    users: ['davgate'],
    passwordFile: join(home, 'json', 'password'),
    pid: child.pid,
  });
  const { url } = ready as { url: string };
  expect((await fetch(url)).status).toBe(401);
  child.kill('SIGTERM');
  await once(child, 'close');
  for (const text of output().trim().split('\n')) expect(() => JSON.parse(text)).not.toThrow();
  expect(output()).not.toContain('"request"');
});

test.each(['--version', 'version'])('davgate %s prints the version, with exit code 0', async (word) => {
  const version = await runProgram([word]);
  expect([version.code, version.output]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
});

test('davgate login whose output is closed ends with exit code 1 and without a stack trace', async () => {
  const { child, output } = spawnProgram(['login', '--app-key', 'key', '--data-dir', join(home, 'head')]);
  child.stdout?.destroy();
  const [code] = (await once(child, 'close')) as [number | null]; // 'close' passes the exit code
  expect([code, output()]).toEqual([1, 'davgate: no code was pasted; run davgate login again\n']);
});

test('several users each see the root of their own drive, and the start names the file that lists them', async () => {
  const file = join(home, 'users.json');
  const { stdout } = await command(process.execPath, ['dist/cli/main.js', 'hash-password'], {
    input: 'bobs word\n',
  });
  const users = [
    { name: 'ann', 'password-hash': cheapHash('anns word'), drive: 'one' },
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
