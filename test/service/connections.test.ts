import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Log } from '../../src/util/log.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectRaw, type RawConnection } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc } from '../support/service-client.ts';

const logged: string[] = [];
const log: Log = {
  info: () => undefined,
  warn: (event) => logged.push(event),
  error: (event) => logged.push(event),
};

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ log });
});
afterAll(() => service.close());

const portOf = ({ url }: TestService) => Number(new URL(url).port);
const raw = (text: string, on = service) => connectRaw(portOf(on), text);

/** The service answers 100 Continue when it reads the body, which shows that the request has begun. */
const CONTINUE = 'Expect: 100-continue';

function uploadHead(path: string, headers: readonly string[], on = service): string {
  return [
    'POST /2/files/upload HTTP/1.1',
    'Host: service',
    `Authorization: Bearer ${on.token}`,
    'Content-Type: application/octet-stream',
    `Dropbox-API-Arg: ${JSON.stringify({ path })}`,
    ...headers,
    '',
    '',
  ].join('\r\n');
}

async function exists(path: string): Promise<boolean> {
  return (await rpc(service, 'files/get_metadata', { path })).status === 200;
}

/** Waits until the storage has finished earlier requests, by a write after them. */
async function settled(): Promise<void> {
  await put(service, '/settled', String(Math.random()));
}

describe('aborted uploads', () => {
  test.each<[string, string, (connection: RawConnection) => void]>([
    ['reset, of known length', 'Content-Length: 9', ({ socket }) => socket.resetAndDestroy()],
    ['ended, of known length', 'Content-Length: 9', ({ socket }) => socket.end()],
    ['reset, chunked', 'Transfer-Encoding: chunked', ({ socket }) => socket.resetAndDestroy()],
    ['ended, chunked', 'Transfer-Encoding: chunked', ({ socket }) => socket.end()],
    ['garbage for a chunk', 'Transfer-Encoding: chunked', ({ send }) => send('zzz\r\nnonsense\r\n')],
  ])('an upload whose client breaks it off commits nothing: %s', async (name, framing, leave) => {
    const path = `/gone/${name}`;
    const connection = raw(uploadHead(path, [framing, CONTINUE]));
    await connection.until('100 Continue');
    connection.send(framing.startsWith('T') ? '4\r\nhalf\r\n' : 'half');
    leave(connection);
    await connection.closed();
    await settled();
    expect(await exists(path)).toBe(false);
    expect(logged).toEqual([]);
  });

  test('an append to a session whose client resets the connection adds no bytes', async () => {
    const started = await fetch(`${service.url}/2/files/upload_session/start`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'content-type': 'application/octet-stream',
        'dropbox-api-arg': '{}',
      },
    });
    const { session_id: session } = (await started.json()) as { session_id: string };
    const cursor = { session_id: session, offset: 0 };
    const head = uploadHead('', ['Content-Length: 9', CONTINUE])
      .replace('files/upload ', 'files/upload_session/append_v2 ')
      .replace('{"path":""}', JSON.stringify({ cursor }));
    const connection = raw(head);
    await connection.until('100 Continue');
    connection.send('half');
    connection.socket.resetAndDestroy();
    await settled();
    const finished = await fetch(`${service.url}/2/files/upload_session/finish`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'content-type': 'application/octet-stream',
        'dropbox-api-arg': JSON.stringify({ cursor, commit: { path: '/part' } }),
      },
    });
    expect(await finished.json()).toMatchObject({ size: 0 });
  });
});

describe('uploads that are refused early', () => {
  test('a refused upload of 32 MiB is read to its end, and its client gets the 409', async () => {
    const body = Buffer.alloc(32 * 1024 * 1024, 1);
    const answer = raw(uploadHead('no-slash', [`Content-Length: ${body.length}`]));
    answer.send(body);
    expect(await answer.until('malformed_path')).toMatch(/^HTTP\/1\.1 409 /);
    await answer.closed();
    expect(answer.socket.errored).toBe(null);
  });

  test('a connection on which a short upload was refused takes the next request', async () => {
    const answer = raw(uploadHead('no-slash', ['Content-Length: 100000']));
    expect(await answer.until('malformed_path')).toMatch(/^HTTP\/1\.1 409 /);
    answer.send(Buffer.alloc(100_000, 1));
    answer.send(`${uploadHead('/after-refusal', ['Content-Length: 4', 'Connection: close'])}text`);
    expect(await answer.closed()).toContain('"name":"after-refusal"');
  });

  test('a refused upload gets its 409 before it has sent any of its body', async () => {
    const answer = raw(uploadHead('no-slash', ['Content-Length: 157286400']));
    expect(await answer.until('malformed_path')).toMatch(/^HTTP\/1\.1 409 /);
    answer.socket.destroy();
  });

  test('an upload of more than 150 MiB is refused as payload_too_large before its body comes, and stores nothing', async () => {
    const answer = raw(uploadHead('/large', [`Content-Length: ${150 * 1024 * 1024 + 1}`]));
    const refusal = await answer.until('{".tag":"payload_too_large"}');
    expect(refusal).toMatch(/^HTTP\/1\.1 409 /);
    expect(refusal).toContain('"error_summary":"payload_too_large/');
    answer.socket.destroy();
    expect(await exists('/large')).toBe(false);
  });

  test('an upload with Expect: 100-continue gets 409 at once where it is refused, and 100 where it is not', async () => {
    const headers = ['Content-Length: 4', 'Expect: 100-continue'];
    const refused = raw(uploadHead('no-slash', headers));
    expect(await refused.closed()).toMatch(/^HTTP\/1\.1 409 /);
    const taken = raw(uploadHead('/continued', headers));
    await taken.until('HTTP/1.1 100 Continue\r\n\r\n');
    taken.send('text');
    await taken.until('"name":"continued"');
    taken.socket.destroy();
  });

  test('an upload in chunks without an end is refused at 150 MiB and stores nothing', async () => {
    const answer = raw(uploadHead('/endless', ['Transfer-Encoding: chunked']));
    const chunk = Buffer.concat([
      Buffer.from('1000000\r\n'),
      Buffer.alloc(16 * 1024 * 1024),
      Buffer.from('\r\n'),
    ]);
    const refused = answer.until('payload_too_large');
    for (let sent = 0; sent < 10; sent++) answer.send(chunk);
    expect(await refused).toMatch(/^HTTP\/1\.1 409 /);
    answer.socket.destroy();
    expect(await exists('/endless')).toBe(false);
  });

  test('an upload with Content-Encoding answers 400 and stores nothing', async () => {
    const answer = raw(uploadHead('/zipped', ['Content-Encoding: gzip', 'Content-Length: 4']));
    answer.send('text');
    expect(await answer.until('Content-Encoding')).toMatch(/^HTTP\/1\.1 400 /);
    answer.socket.destroy();
    expect(await exists('/zipped')).toBe(false);
  });
});

test('an upload in chunks without Content-Length is stored whole', async () => {
  const connection = raw(uploadHead('/chunked', ['Transfer-Encoding: chunked', 'Connection: close']));
  connection.send('5\r\nsome \r\n4\r\ntext\r\n0\r\n\r\n');
  expect(await connection.closed()).toContain('"size":9');
  expect((await download(service, '/chunked')).text).toBe('some text');
});

test('pipelined requests are answered in their order', async () => {
  const both = raw(`${uploadHead('/first', ['Content-Length: 3'])}one`);
  both.send(`${uploadHead('/second', ['Content-Length: 3', 'Connection: close'])}two`);
  expect(await both.closed()).toMatch(/"name":"first"[\s\S]*"name":"second"/);
});

describe('malformed requests', () => {
  test.each([
    ['400 Bad Request', 'nonsense\r\n\r\n'],
    ['400 Bad Request', 'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    [
      '431 Request Header Fields Too Large',
      `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(140_000)}\r\n\r\n`,
    ],
    [
      '400 Bad Request',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
    ['400 Bad Request', 'POST /2/check/user HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n'],
    [
      '501 Not Implemented',
      'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    ],
    ['400 Bad Request', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n'],
    ['417 Expectation Failed', 'POST / HTTP/1.1\r\nHost: x\r\nExpect: coffee\r\n\r\n'],
  ])('the malformed request %# is answered %s, with an id', async (status, text) => {
    const answer = await raw(text).closed();
    expect(answer.slice(9, 9 + status.length)).toBe(status);
    expect(answer).toMatch(/\r\nX-Dropbox-Request-Id: [0-9a-f]{32}\r\n/i);
  });

  test('an upload with a broken chunk is answered 400 and stores nothing', async () => {
    const connection = raw(uploadHead('/bad-chunk', ['Transfer-Encoding: chunked', CONTINUE]));
    await connection.until('100 Continue');
    connection.send('zzz\r\nnonsense\r\n');
    expect(await connection.closed()).toMatch(/\r\n\r\nHTTP\/1\.1 400 [\s\S]*X-Dropbox-Request-Id: /);
    expect(await exists('/bad-chunk')).toBe(false);
  });

  test('a malformed HEAD request is answered 400 without a body', async () => {
    const answer = await raw('HEAD /a b HTTP/1.1\r\nHost: x\r\n\r\n').closed();
    expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*\r\n\r\n$/);
  });

  test('the service serves uploads and downloads after malformed requests', async () => {
    await put(service, '/going-on', 'text');
    expect((await download(service, '/going-on')).text).toBe('text');
  });
});

describe('abandoned downloads', () => {
  test('a download that its client abandons logs no error and releases its file, whose blocks are removed from the disk', async () => {
    const left = await startTestService({ log });
    const blocks = () => readdir(join(left.dataDirectory, 'blocks'));
    await put(left, '/left', Buffer.alloc(64 * 1024 * 1024, 7));
    expect(await blocks()).not.toEqual([]);
    const outgoing = request(`${left.url}/2/files/download`, {
      method: 'POST',
      headers: { authorization: `Bearer ${left.token}`, 'dropbox-api-arg': '{"path":"/left"}' },
    });
    outgoing.end();
    const [incoming] = await once(outgoing, 'response');
    await once(incoming, 'readable');
    outgoing.on('error', () => undefined);
    expect((await rpc(left, 'files/permanently_delete', { path: '/left' })).status).toBe(200);
    expect(await blocks()).not.toEqual([]);
    incoming.destroy();
    await eventually(async () => expect(await blocks()).toEqual([]));
    await left.close();
    expect(logged).toEqual([]);
  });
});

describe('close of the service', () => {
  const poll = async (on: TestService) => {
    const { json } = await rpc(on, 'files/list_folder/get_latest_cursor', { path: '' });
    const argument = { ...(json as object), timeout: 480 };
    return rpc(on, 'files/list_folder/longpoll', argument, { token: null });
  };

  test('a closing service answers long polls, lets writes finish and refuses new connections', async () => {
    const clock = new ManualClock();
    const closing = await startTestService({ clock });
    const waiting = poll(closing);
    await clock.untilSleeping();
    const writing = raw(uploadHead('/last', ['Content-Length: 8', CONTINUE], closing), closing);
    await writing.until('100 Continue');
    writing.send('half');
    const closed = closing.close();
    expect((await waiting).json).toEqual({ changes: false });
    writing.send('rest');
    expect(await writing.closed()).toContain('"name":"last"');
    await closed;
    await expect(fetch(closing.url)).rejects.toThrow();
    await closing.close();
  });

  test('a closing service sends a slow reader all of its download', async () => {
    const closing = await startTestService({ clock: new ManualClock() });
    await put(closing, '/large', Buffer.alloc(32 * 1024 * 1024, 7));
    const response = await new Promise<IncomingMessage>((resolve) => {
      const headers = { authorization: `Bearer ${closing.token}`, 'dropbox-api-arg': '{"path":"/large"}' };
      request(`${closing.url}/2/files/download`, { method: 'POST', headers }, resolve).end();
    });
    const closed = closing.close();
    let sizeBytes = 0;
    for await (const chunk of response) sizeBytes += chunk.length;
    expect(sizeBytes).toBe(32 * 1024 * 1024);
    await closed;
  });

  test('a closing service ends a stalled upload after 30 s', async () => {
    const clock = new ManualClock();
    const closing = await startTestService({ clock });
    const stuck = raw(uploadHead('/stuck', ['Content-Length: 8', CONTINUE], closing), closing);
    await stuck.until('100 Continue');
    const closed = closing.close();
    await clock.untilSleeping();
    await clock.advance(30_000);
    await closed;
    expect(await stuck.closed()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  });
});

test('a service on a port that is taken fails with an error that names it, and leaves its data directory free', async () => {
  const listen = { host: '127.0.0.1', port: portOf(service) };
  await expect(startTestService({ listen })).rejects.toThrow(
    /127\.0\.0\.1:\d+: another program uses that port/,
  );
  const other = await startTestService();
  await other.service.close();
  const options = { listen, dataDirectory: other.dataDirectory };
  await expect(startTestService(options)).rejects.toThrow(/another program uses that port/);
  const again = await startTestService({ dataDirectory: other.dataDirectory });
  await again.close();
  await other.close();
});

test('a service on a data directory that another one uses fails with an error that names it', async () => {
  const { dataDirectory } = service;
  await expect(startTestService({ dataDirectory })).rejects.toThrow(dataDirectory);
  expect((await rpc(service, 'check/user', {})).status).toBe(200);
});
