import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type HttpRemote, openConnection, remoteOf } from '../../../src/api/client.ts';
import { HTTP_TIMEOUTS, Http } from '../../../src/api/http.ts';
import { LostConnection } from '../../../src/api/lost-connection.ts';
import type { FileEntry } from '../../../src/api/remote.ts';
import type { UploadCalls } from '../../../src/api/write/upload-calls.ts';
import { uploadCallsOf } from '../../../src/api/write/upload-routes.ts';
import { elapsedMs, systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { piecesOf } from '../../support/byte-source.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { at, openScripted } from '../../support/scripted-remote.ts';
import { type Answer, fileMetadata } from '../../support/scripted-service.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts a server that accepts connections and passes them to `serve`. */
async function rawService(serve: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const silent = () => {};

/** Sends `head` and then `piece` every 5 ms until the connection closes. */
const dripping = (head: string, piece: string) => (socket: Socket) => {
  socket.write(head);
  const timer = setInterval(() => socket.write(piece), 5);
  socket.on('close', () => clearInterval(timer));
};

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;

describe('a service that accepts connections and never answers', () => {
  const body = new Uint8Array(300 * 1024);
  const session = { id: 's' };
  const commit = { session, sizeBytes: 1, path: at('/f'), options: { mode: { if: 'any' } as const } };
  test.each<[string, (remote: HttpRemote, uploads: UploadCalls) => Promise<unknown>]>([
    ['a stat', (remote) => remote.stat(at('/f'))],
    ['a page of the change feed', (remote) => remote.changesSince('c')],
    ['a new folder', (remote) => remote.createFolder(at('/f'))],
    ['a short upload', (_, uploads) => uploads.upload(at('/f'), new Uint8Array(1), { mode: { if: 'any' } })],
    ['a long upload', (_, uploads) => uploads.upload(at('/f'), body, { mode: { if: 'any' } })],
    [
      'a part of an upload',
      (_, uploads) => uploads.appendSession(session, { offset: 0, bytes: body, last: true }),
    ],
    ['the commit of an upload', (_, uploads) => uploads.finishSession(commit)],
    [
      'the commit of several uploads',
      async (_, uploads) => Promise.all(await uploads.finishSessions([commit])),
    ],
  ])('%s ends with offline within a minute when the service never answers', async (_what, call) => {
    const url = await rawService(silent);
    const clock = new ManualClock();
    const urls = { apiUrl: url, contentUrl: url, notifyUrl: url };
    const credentials = { token: 't' };
    const connection = openConnection({
      ...urls,
      credentials,
      root: '',
      clock,
      httpClock: clock,
      log: silentLog,
    });
    closers.push(() => connection.close());
    const start = clock.instant();
    const outcome = await clock.during(
      call(remoteOf(connection), uploadCallsOf(connection.client)).then(
        (result) => result,
        (error: unknown) => error,
      ),
    );
    expect([outcome].flat()[0]).toMatchObject({ failure: 'offline' });
    expect(elapsedMs(clock, start)).toBeLessThanOrEqual(60_000);
  });
});

describe('an endless answer', () => {
  const SOON_MS = 100;
  /** Longer than any test takes, in ms. */
  const NEVER_MS = 3_600_000;

  test.each([
    ['drips headers', dripping('HTTP/1.1 200 OK\r\n', 'x-drip: 1\r\n'), NEVER_MS, SOON_MS, /no whole answer/],
    ['drips its body', dripping(HEAD, chunk(1)), SOON_MS, NEVER_MS, /only \d+ bytes arrived/],
    [
      'sends its body at the speed of a slow line',
      dripping(HEAD, chunk(8 * 1024)),
      NEVER_MS,
      SOON_MS,
      /no whole answer/,
    ],
  ])(
    'an answer that never ends (%s) fails when its time limit is over',
    async (_how, serve, silenceMs, wholeAnswerMs, message) => {
      const url = await rawService(serve);
      const limits = { ...HTTP_TIMEOUTS, answerMs: wholeAnswerMs, silenceMs };
      const http = new Http({ base: url, content: url, notify: url }, limits);
      closers.push(() => http.close());
      const request = { host: 'base', path: '/2/files/get_metadata', headers: {}, body: '{}' } as const;
      const signal = new AbortController().signal;
      const failure = await http.send({ ...request, wholeAnswerMs }, signal).catch((error) => error);
      expect(failure).toBeInstanceOf(LostConnection);
      expect(failure.message).toMatch(message);
    },
  );
});

test('an answer of more than 32 MiB fails and closes its connection', async () => {
  let isClosed = false;
  const url = await rawService((socket) => {
    dripping(HEAD, chunk(4 * 1024 * 1024))(socket);
    socket.on('close', () => {
      isClosed = true;
    });
  });
  const http = new Http({ base: url, content: url, notify: url });
  closers.push(() => http.close());
  const request = { host: 'base', path: '/2/files/get_metadata', headers: {}, body: '{}' } as const;
  const sent = http.send(request, new AbortController().signal);
  await expect(sent).rejects.toThrow(/an answer over 33554432 bytes/);
  await eventually(() => expect(isClosed).toBe(true));
});

/** Idle timeout of a download, in ms: longer than a busy machine pauses in the middle of one. */
const SILENCE_MS = 1_000;

/** Returns the entry that `fileMetadata` describes. */
const fileOf = (sizeBytes: number): FileEntry => ({
  kind: 'file',
  id: 'id:AAAAAAAAAAAAAAAAAAAAAA',
  path: at('/f'),
  name: 'f',
  rev: '0123456789abc',
  sizeBytes,
  modifiedMs: 0,
  committedMs: 0,
});

test.each<[string, number]>([
  ['falls silent', 0],
  ['drips', 1],
])('a download that %s is cut off as offline, after the bytes that have arrived', async (_how, dripBytes) => {
  const sizeBytes = 1_000_000;
  const half: Answer = (response) => {
    const result = JSON.stringify(fileMetadata('/f', { size: sizeBytes }));
    response.writeHead(200, { 'dropbox-api-result': result, 'content-length': sizeBytes });
    response.write(Buffer.alloc(sizeBytes / 2));
    if (dripBytes === 0) return;
    const timer = setInterval(() => response.write(Buffer.alloc(dripBytes)), 5);
    response.on('close', () => clearInterval(timer));
  };
  const scripted = await openScripted({ timeouts: { ...HTTP_TIMEOUTS, silenceMs: SILENCE_MS } });
  closers.push(() => scripted.close());
  scripted.service.on('files/download', half);
  const download = await scripted.remote.download(fileOf(sizeBytes), undefined);
  let receivedBytes = 0;
  const read = async () => {
    for await (const piece of piecesOf(download)) receivedBytes += piece.length;
  };
  await expect(read()).rejects.toMatchObject({ failure: 'offline', details: { cut: {} } });
  expect(receivedBytes).toBeGreaterThanOrEqual(sizeBytes / 2);
});

test('a download whose reader is slow is not cut off', async () => {
  const sizeBytes = 600_000;
  const scripted = await openScripted({ timeouts: { ...HTTP_TIMEOUTS, silenceMs: SILENCE_MS } });
  closers.push(() => scripted.close());
  scripted.service.on('files/download', (response) => {
    const result = JSON.stringify(fileMetadata('/f', { size: sizeBytes }));
    response.writeHead(200, { 'dropbox-api-result': result, 'content-length': sizeBytes });
    response.end(Buffer.alloc(sizeBytes));
  });
  const download = await scripted.remote.download(fileOf(sizeBytes), undefined);
  let receivedBytes = 0;
  for await (const piece of piecesOf(download)) {
    if (receivedBytes === 0) await systemClock.sleep(1.5 * SILENCE_MS);
    receivedBytes += piece.length;
  }
  expect(receivedBytes).toBe(sizeBytes);
});
