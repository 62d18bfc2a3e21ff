import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { matchOutput, spawnProgram, temporaryDirectory } from '../support/program.ts';

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

test('davgate serves, and logs one warning, where systemd-notify is missing', async () => {
  const environment = { NOTIFY_SOCKET: join(data.path, 'none'), WATCHDOG_USEC: '100000', PATH: '/nowhere' };
  const { url, output } = await startDavgate(environment);
  expect((await fetch(`${url}a`, { method: 'PUT', body: 'x' })).status).toBe(201);
  await eventually(() => expect(output()).toContain('cannot notify systemd'));
  expect(output().match(/cannot notify systemd/g)).toHaveLength(1);
});
