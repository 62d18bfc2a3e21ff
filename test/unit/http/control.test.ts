import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startControl } from '../../../src/http/control.ts';
import { unhurried } from '../../support/unhurried.ts';

let directory: string;
let socketPath: string;
let lines: string[];
let opened: Awaited<ReturnType<typeof startControl>> | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-control-'));
  socketPath = join(directory, 'control.sock');
  lines = [];
});
afterEach(async () => {
  await opened?.close(unhurried());
  await rm(directory, { recursive: true });
});

async function* bytesOf(words: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(words);
}

const note = (event: string) => void lines.push(event);
const log = { info: note, warn: note, error: note };

async function open(commands: Partial<Parameters<typeof startControl>[0]['commands']> = {}) {
  opened = await startControl({
    socketPath,
    commands: {
      locks: async () => [{ token: 'a' }],
      removeLocks: async (choice) => [choice],
      ...commands,
    },
    journal: {
      list: async () => [{ id: 'a' }],
      body: async (id) => (id === 'a' ? { write: { id }, bytes: bytesOf('content') } : undefined),
      retry: async (id) => (id === 'a' ? {} : { refused: 'no such write' }),
      discard: async () => {
        throw new Error('the disk');
      },
    },
    address: () => 'http://127.0.0.1:8765/',
    log,
  });
}

function ask(method: string, path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, method, path }, (answer) => {
      text(answer).then((body) => resolve([answer.statusCode, JSON.parse(body)]), reject);
    });
    outgoing.on('error', reject).end();
  });
}

test('the control socket says the address of the drive', async () => {
  await open();
  expect(await ask('GET', '/address')).toEqual([200, 'http://127.0.0.1:8765/']);
});

test('the control socket is readable by its owner only, and lists and removes locks', async () => {
  await open();
  expect((await stat(socketPath)).mode & 0o777).toBe(0o600);
  expect(await ask('GET', '/locks')).toEqual([200, [{ token: 'a' }]]);
  expect(await ask('DELETE', '/locks?token=a+b%26c')).toEqual([200, [{ token: 'a b&c' }]]);
  expect(await ask('DELETE', '/locks?user=ann&path=%2Fa')).toEqual([200, [{ user: 'ann', path: '/a' }]]);
  expect(await ask('DELETE', '/locks')).toEqual([200, [{}]]);
  expect(await ask('POST', '/locks')).toEqual([405, null]);
  expect(await ask('GET', '/else')).toEqual([404, null]);
});

test('the control server replaces a stale socket file at the start and removes its own when it closes', async () => {
  await writeFile(socketPath, '');
  await open();
  expect(await ask('GET', '/locks')).toEqual([200, [{ token: 'a' }]]);
  await opened?.close(unhurried());
  await expect(stat(socketPath)).rejects.toThrow('ENOENT');
});

test('a failing control command answers 500 and is logged, and the next command succeeds', async () => {
  await open({
    locks: async () => {
      throw new Error('no');
    },
  });
  expect(await ask('GET', '/locks')).toEqual([500, null]);
  expect(lines).toEqual(['control command failed']);
  expect(await ask('DELETE', '/locks?token=other')).toEqual([200, [{ token: 'other' }]]);
});

test('a control socket whose path is too long is logged and the start continues', async () => {
  socketPath = join(directory, 'x'.repeat(120), 'control.sock');
  await open();
  expect(lines).toEqual([
    'cannot open the control socket; davgate locks, journal and mount cannot reach this davgate',
  ]);
});

test('the control server closes with an idle connection open, and after it has answered the running command', async () => {
  let arrived = (): void => undefined;
  const isArrived = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await open({
    locks: async () => {
      arrived();
      await released;
      return [{ token: 'late' }];
    },
  });
  const idle = connect(socketPath);
  await once(idle, 'connect');
  const asked = ask('GET', '/locks');
  await isArrived;
  const closed = opened?.close(unhurried());
  release();
  expect(await asked).toEqual([200, [{ token: 'late' }]]);
  await closed;
  idle.destroy();
});

test('the control server closes at the end of the grace period although a command hangs', async () => {
  let arrived = (): void => undefined;
  const isArrived = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  await open({
    locks: () => {
      arrived();
      return new Promise(() => {});
    },
  });
  const asked = expect(ask('GET', '/locks')).rejects.toThrow('socket hang up');
  await isArrived;
  await opened?.close(AbortSignal.abort());
  await asked;
  opened = undefined;
});

test('journal commands answer 200, 404 for an unknown id, 409 with a reason, 500 on failure and 405 for another method', async () => {
  await open();
  expect(await ask('GET', '/journal')).toEqual([200, [{ id: 'a' }]]);
  expect(await ask('GET', '/journal/write?id=a')).toEqual([200, { id: 'a' }]);
  expect(await ask('GET', '/journal/body?id=b')).toEqual([404, null]);
  expect(await ask('POST', '/journal/retry?id=a')).toEqual([200, {}]);
  expect(await ask('POST', '/journal/retry?id=b')).toEqual([409, { refused: 'no such write' }]);
  expect(await ask('DELETE', '/journal?id=a')).toEqual([500, null]);
  expect(await ask('PUT', '/journal')).toEqual([405, null]);
});
