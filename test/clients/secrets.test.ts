import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verifyPassword } from '../../src/http/passwords.ts';
import { matchOutput, runProgram, spawnProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { onTerminal } from '../support/terminal.ts';

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: TestService;
beforeAll(async () => {
  [home, service] = await Promise.all([temporaryDirectory(), startTestService()]);
});
afterAll(async () => {
  await service.close();
  await home.remove();
});

const CTRL_C = '\x03';

describe('a typed password', () => {
  test('hash-password asks twice for a typed password and does not show it', async () => {
    const terminal = onTerminal(['hash-password']);
    await terminal.shows(/Password: /);
    terminal.type('correct horsex\x7f\r');
    await terminal.shows(/again: /i);
    terminal.type('correct horse\r');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.output()).not.toContain('horse');
    const hash = /scrypt\$\S+/.exec(terminal.output())?.[0] ?? '';
    expect(await verifyPassword('correct horse', hash)).toBe(true);
  });

  test('hash-password refuses a typed password when the second one differs', async () => {
    const terminal = onTerminal(['hash-password']);
    await terminal.shows(/Password: /);
    terminal.type('correct horse\r');
    await terminal.shows(/again: /i);
    terminal.type('correct house\r');
    expect(await terminal.ended()).toBe(2);
    expect(terminal.output()).toContain('the two passwords differ');
    expect(terminal.output()).not.toMatch(/scrypt|correct/);
  });

  test('Ctrl+C at the prompt ends hash-password with exit code 130', async () => {
    const terminal = onTerminal(['hash-password']);
    await terminal.shows(/Password: /);
    terminal.type(`half${CTRL_C}`);
    expect(await terminal.ended()).toBe(130);
    expect(terminal.output()).not.toMatch(/half|scrypt/);
  });

  test('service account create does not show a typed password', async () => {
    const data = ['--data', join(home.path, 'service')];
    const words = ['service', 'account', 'create', 'ann@example.org', '--password-stdin', ...data];
    const terminal = onTerminal(words);
    await terminal.shows(/Password: /);
    terminal.type('battery staple\r');
    await terminal.shows(/again: /i);
    terminal.type('battery staple\r');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.output()).toContain('Created the account ann@example.org');
    expect(terminal.output()).not.toContain('staple');
  });
});

// test/clients/command-line.test.ts shows that it is not printed without a terminal.
describe('the generated password', () => {
  const place = (name: string) => [
    ...['--listen', '127.0.0.1:0', '--data-dir', join(home.path, name)],
    ...['--cache-dir', join(home.path, 'cache')],
  ];
  const passwordIn = async (name: string) =>
    (await readFile(join(home.path, name, 'password'), 'utf8')).trim();

  /** Starts davgate on a terminal and ends it; returns its output. */
  async function terminalOutput(name: string): Promise<string> {
    const terminal = onTerminal(place(name));
    await terminal.shows(/Ctrl\+C/);
    terminal.type(CTRL_C);
    expect(await terminal.ended()).toBe(0);
    return terminal.output();
  }

  test('davgate shows its generated password on a terminal at the first start, and later only the path of its file', async () => {
    const first = await terminalOutput('terminal');
    const password = await passwordIn('terminal');
    expect(password).toHaveLength(20);
    expect(first).toMatch(new RegExp(`password +${password}`));
    const later = await terminalOutput('terminal');
    expect(later).not.toContain(password);
    expect(later).toContain(join(home.path, 'terminal', 'password'));
  });
});

describe('the credentials of davgate service', () => {
  const SECRETS = ['password', 'appSecret', 'token', 'refreshToken'];
  const words = (name: string) => ['service', '--listen', '127.0.0.1:0', '--data', join(home.path, name)];
  const credentialsIn = async (name: string): Promise<Record<string, string>> =>
    JSON.parse(await readFile(join(home.path, name, 'credentials.json'), 'utf8'));

  test('davgate service shows its secrets on a terminal', async () => {
    const terminal = onTerminal(words('shown'));
    await terminal.shows(/Ctrl\+C/);
    terminal.type(CTRL_C);
    expect(await terminal.ended()).toBe(0);
    const credentials = await credentialsIn('shown');
    for (const name of SECRETS) expect(terminal.output()).toContain(credentials[name]);
  });

  test('davgate service prints the path of its credentials, and no secret, where standard output may be a log', async () => {
    const { child, output } = spawnProgram(words('logged'));
    await matchOutput(child, output, /Ctrl\+C/);
    child.kill('SIGTERM');
    await once(child, 'close');
    const credentials = await credentialsIn('logged');
    for (const name of SECRETS) expect(output()).not.toContain(credentials[name]);
    expect(output()).toContain(join(home.path, 'logged', 'credentials.json'));
  });
});

describe('a secret in a file', () => {
  const secret = async (name: string, text: string) => {
    const file = join(home.path, name);
    await writeFile(file, text);
    return file;
  };
  const place = (name: string) => [
    ...['--listen', '127.0.0.1:0', '--data-dir', join(home.path, name)],
    ...['--cache-dir', join(home.path, 'cache')],
  ];

  /** Starts davgate with these arguments and variables, and returns the status of a request with this password. */
  async function statusWith(password: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    const { child, output } = spawnProgram(args, { ...process.env, ...environment });
    const url = await matchOutput(child, output, /http:\/\/127\.0\.0\.1:\d+\//);
    const login = Buffer.from(`davgate:${password}`).toString('base64');
    const { status } = await fetch(url, { headers: { authorization: `Basic ${login}` } });
    child.kill('SIGTERM');
    await once(child, 'close');
    return { status, output: output() };
  }

  test('--password-file sets the password, without the line break at its end', async () => {
    const file = await secret('word', 'from a file\n');
    const { status, output } = await statusWith('from a file', [...place('pf'), '--password-file', file]);
    expect(status).toBe(200);
    expect(output).not.toMatch(/from a file|warn/);
  });

  test('the systemd credential davgate-password sets the password', async () => {
    await secret('davgate-password', 'of systemd\n');
    const { status } = await statusWith('of systemd', place('cd'), { CREDENTIALS_DIRECTORY: home.path });
    expect(status).toBe(200);
  });

  test('--token-file sets the token, which is not printed, and a password in --password is warned of', async () => {
    const file = await secret('token', `${service.token}\n`);
    const words = [...place('tf'), '--api-url', service.url, '--token-file', file, '--password', 'p'];
    const { status, output } = await statusWith('p', words);
    expect(status).toBe(200);
    expect(output).not.toContain(service.token);
    expect(output).toMatch(/ warn --password: .*--password-file/);
  });

  test('davgate does not warn of a password in DAVGATE_PASSWORD', async () => {
    expect((await statusWith('p', place('flag'), { DAVGATE_PASSWORD: 'p' })).output).not.toContain(' warn ');
  });

  test('a password file that cannot be read ends the start with exit code 2 and the file’s name', async () => {
    const missing = join(home.path, 'missing');
    const { code, output } = await runProgram([...place('x'), '--password-file', missing]);
    expect([code, output]).toEqual([
      2,
      `davgate: --password-file: cannot read ${missing} (ENOENT); check its name and permissions\n`,
    ]);
  });
});
