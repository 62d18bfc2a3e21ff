import { chmodSync, linkSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { Networks } from '../../../src/util/networks.ts';
import { expectSoon } from '../../support/eventually.ts';
import { listening } from '../../support/listening.ts';

/** Returns a path for a socket in a new directory. */
function newPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-socket-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, 'davgate.sock');
}

const onSocket = (socketPath: string, mode = 0o660) =>
  listening({ socket: { socketPath, mode }, trustedProxies: new Networks(['unix']) });

function get(socketPath: string, headers: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path: '/a', headers, agent: false }, (answer) => {
      text(answer).then(resolve, reject);
    });
    outgoing.once('error', reject).end();
  });
}

/** Listens on a socket, and closes it at the end of the test. */
async function occupy(path: string): Promise<ReturnType<typeof createServer>> {
  const server = createServer();
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

test('requests on a Unix socket are answered, its file has the mode, and is gone after the end', async () => {
  const path = newPath();
  const { close } = await onSocket(path, 0o606);
  expect(await get(path)).toBe('handled');
  expect(statSync(path).mode & 0o777).toBe(0o606);
  await close();
  expect(() => statSync(path)).toThrow('ENOENT');
});

test('the address of a client on a Unix socket is the one that the proxy names', async () => {
  const path = newPath();
  const { lines } = await onSocket(path);
  await get(path, { 'X-Forwarded-For': '203.0.113.9, 198.51.100.7' });
  await get(path);
  const addresses = () =>
    lines.filter(({ event }) => event === 'request').map(({ fields }) => fields['address']);
  await expectSoon(addresses).toEqual(['198.51.100.7', 'unix']);
});

test('a socket that a killed process has left is replaced', async () => {
  const path = newPath();
  const other = await occupy(`${path}.other`);
  linkSync(`${path}.other`, path);
  await new Promise((resolve) => other.close(resolve));
  await onSocket(path);
  expect(await get(path)).toBe('handled');
});

test('a socket on which another process listens is refused and stays', async () => {
  const path = newPath();
  await occupy(path);
  await expect(onSocket(path)).rejects.toThrow(
    `cannot listen on unix:${path}: another process listens there; stop it, or choose another path with --listen`,
  );
  expect(statSync(path).isSocket()).toBe(true);
});

test('a file that is no socket is refused and stays', async () => {
  const path = newPath();
  writeFileSync(path, 'precious');
  chmodSync(path, 0o600);
  await expect(onSocket(path)).rejects.toThrow(
    `cannot listen on unix:${path}: there is another file; remove it, or choose another path with --listen`,
  );
  expect(statSync(path).size).toBe(8);
});

test('a socket in a directory that does not exist is refused, and the error says to make it', async () => {
  const path = join(newPath(), 'davgate.sock');
  await expect(onSocket(path)).rejects.toThrow(
    `cannot listen on unix:${path}: its directory does not exist, or this user may not make files there; make it, or change its permissions`,
  );
});
