import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { succeed } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { matchOutput, runProgram, spawnProgram, temporaryDirectory } from '../support/program.ts';

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
const running: ChildProcess[] = [];
beforeEach(async () => {
  data = await temporaryDirectory();
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    const closed = once(child, 'close');
    if (child.exitCode === null && child.signalCode === null && child.kill()) await closed;
  }
  await data.remove();
});

/** Receives the datagrams of a notify socket, as systemd would. Node has no such sockets. */
async function startReceiver(): Promise<{ path: string; received(): string }> {
  const path = join(data.path, 'notify');
  const child = spawn('socat', ['-u', `UNIX-RECV:${path}`, 'STDOUT']);
  running.push(child);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += `${chunk}\n`;
  });
  await eventually(() => expect(existsSync(path)).toBe(true));
  return { path, received: () => text };
}

async function startDavgate(environment: NodeJS.ProcessEnv, ...more: string[]) {
  const folders = ['--data-dir', data.path, '--cache-dir', join(data.path, 'cache')];
  const words = ['--listen', '127.0.0.1:0', '--no-auth', ...folders, ...more];
  const { child, output } = spawnProgram(words, { ...process.env, ...environment });
  running.push(child);
  const url = await matchOutput(child, output, /http:\/\/127\.0\.0\.1:\d+\//);
  return { child, output, url };
}

const LOGIN = { authorization: `Basic ${Buffer.from('ann:secret word').toString('base64')}` };

/** Starts davgate as systemd does for a socket unit, with the program that systemd has for this. */
function activated(listen: string, environment: NodeJS.ProcessEnv = {}, more: readonly string[] = []) {
  const folders = ['--data-dir', data.path, '--cache-dir', join(data.path, 'cache')];
  // A configured password would cost 0.3 s of processor time at each start.
  writeFileSync(join(data.path, 'password'), 'secret word', { mode: 0o600 });
  const login = ['--user', 'ann'];
  const davgate = [process.execPath, join(PROJECT_ROOT, 'dist/cli/main.js'), '--listen', 'systemd'];
  // It passes only the variables that it is told to.
  const variables = ['PATH', 'HOME', ...Object.keys(environment)].flatMap((name) => ['-E', name]);
  const child = spawn(
    'systemd-socket-activate',
    ['-l', listen, ...more, ...variables, ...davgate, ...folders, ...login],
    { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  running.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return { child, output: () => text };
}

async function expectEnd(child: ChildProcess, code: number): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  expect(child.exitCode).toBe(code);
}

test('davgate tells systemd when it is ready, reloads and stops, and gives its watchdog signs of life', async () => {
  const { path, received } = await startReceiver();
  const { child } = await startDavgate({ NOTIFY_SOCKET: path, WATCHDOG_USEC: '200000' });
  await eventually(() => expect(received()).toContain('READY=1'));
  await eventually(() => expect(received().match(/WATCHDOG=1/g)?.length ?? 0).toBeGreaterThan(2));
  child.kill('SIGHUP');
  await eventually(() => expect(received()).toMatch(/RELOADING=1[\s\S]*READY=1/));
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  expect(child.exitCode).toBe(0);
  await eventually(() => expect(received()).toContain('STOPPING=1'));
});

test('davgate serves the TCP socket that systemd passes, and passes it on to no program that it starts', async () => {
  const port = await freePort();
  const seen = join(data.path, 'seen-by-systemd-notify');
  const program = join(data.path, 'systemd-notify');
  const script = `#!/bin/sh\nenv > ${seen}.new && ls -l /proc/$$/fd >> ${seen}.new && mv ${seen}.new ${seen}\n`;
  writeFileSync(program, script, { mode: 0o755 });
  // systemd starts davgate with the first connection.
  const { child, output } = activated(`127.0.0.1:${port}`, {
    NOTIFY_SOCKET: 'any',
    PATH: `${data.path}:${process.env['PATH']}`,
  });
  await eventually(() => expect(output()).toMatch(/Listening on /));
  expect(await (await fetch(`http://127.0.0.1:${port}/.davgate/healthz`)).text()).toContain('"status":"ok"');
  await matchOutput(child, output, new RegExp(`http://127\\.0\\.0\\.1:${port}/`));
  await eventually(() => expect(existsSync(seen)).toBe(true));
  expect(readFileSync(seen, 'utf8')).not.toMatch(/LISTEN_|socket:/);
  const answer = await fetch(`http://127.0.0.1:${port}/new`, { method: 'PUT', body: 'x', headers: LOGIN });
  expect(answer.status).toBe(201);
  await expectEnd(child, 0);
});

test('davgate serves the Unix socket that systemd passes, whose clients count as a trusted proxy', async () => {
  const socketPath = join(data.path, 'davgate.sock');
  const { child, output } = activated(socketPath);
  await eventually(() => expect(output()).toMatch(/Listening on /));
  const asked = ['--unix-socket', socketPath, '-s', '-H', 'X-Forwarded-For: 192.0.2.7'];
  await succeed('curl', [...asked, 'http://localhost/.davgate/healthz']);
  await succeed('curl', [...asked, '-u', 'ann:secret word', 'http://localhost/nothing']);
  await eventually(() => expect(output()).toMatch(/192\.0\.2\.7/));
  await expectEnd(child, 0);
  expect(existsSync(socketPath)).toBe(true);
});

test('--listen systemd without a socket of its own ends with exit code 2 and one line', async () => {
  writeFileSync(join(data.path, 'password'), 'x', { mode: 0o600 });
  const words = ['--listen', 'systemd', '--user', 'ann', '--data-dir', data.path];
  const start = (environment: NodeJS.ProcessEnv, ...more: string[]) =>
    runProgram([...words, ...more], { ...process.env, ...environment });
  const line =
    'davgate: cannot listen on the socket of systemd: there is none; start davgate by its socket unit (docs/install.md), or write --listen HOST:PORT\n';
  expect(await start({})).toMatchObject({ code: 2, output: line });
  expect(await start({ LISTEN_FDS: '1', LISTEN_PID: '1' })).toMatchObject({ code: 2, output: line });
  const open = ['--listen', 'systemd', '--no-auth', '--data-dir', data.path];
  expect((await runProgram(open)).output).toMatch(
    /^davgate: --no-auth: the socket of systemd may be reached/,
  );
});

test('--listen systemd with two sockets ends with a line that says so', async () => {
  const socketPath = join(data.path, 'one.sock');
  const { child, output } = activated(socketPath, {}, ['-l', join(data.path, 'two.sock')]);
  await eventually(() => expect(output()).toMatch(/Listening on .*two\.sock/));
  const client = connect(socketPath).on('error', () => undefined);
  await once(child, 'close');
  client.destroy();
  expect(output()).toContain('cannot listen on the socket of systemd: there are 2, and davgate serves one');
  expect(child.exitCode).toBe(2);
});

test('the ready file holds the address while clients can connect, and replaces that of a killed davgate', async () => {
  const file = join(data.path, 'ready');
  writeFileSync(file, 'http://127.0.0.1:1/\n');
  const { child, url } = await startDavgate({}, '--ready-file', file);
  await eventually(() => expect(readFileSync(file, 'utf8')).toBe(`${url}\n`));
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
  expect(existsSync(file)).toBe(true);
  const again = await startDavgate({}, '--ready-file', file);
  await eventually(() => expect(readFileSync(file, 'utf8')).toBe(`${again.url}\n`));
  await expectEnd(again.child, 0);
  expect(existsSync(file)).toBe(false);
  const words = ['--no-auth', '--listen', '127.0.0.1:0', '--data-dir', data.path];
  expect(await runProgram([...words, '--ready-file', '/nowhere/ready'])).toMatchObject({
    code: 2,
    output:
      'davgate: --ready-file: cannot write /nowhere/ready (ENOENT); make its folder, or change the permissions\n',
  });
});

test('davgate serves, and logs one warning, where systemd-notify is missing', async () => {
  const environment = { NOTIFY_SOCKET: join(data.path, 'none'), WATCHDOG_USEC: '100000', PATH: '/nowhere' };
  const { url, output } = await startDavgate(environment);
  expect((await fetch(`${url}a`, { method: 'PUT', body: 'x' })).status).toBe(201);
  await eventually(() => expect(output()).toContain('cannot notify systemd'));
  expect(output().match(/cannot notify systemd/g)).toHaveLength(1);
});
