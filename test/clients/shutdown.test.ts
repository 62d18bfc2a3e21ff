import { readdir, writeFile } from 'node:fs/promises';
import { join as joinFiles } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRemote } from '../../src/api/client.ts';
import type { Remote } from '../../src/api/remote.ts';
import { systemClock } from '../../src/util/clock.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { silentLog } from '../../src/util/log.ts';
import { join, type Path, ROOT } from '../../src/util/path.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { eventually } from '../support/eventually.ts';
import {
  cheapHash,
  type Program,
  startProgram,
  startServiceProgram,
  temporaryDirectory,
} from '../support/program.ts';
import { connectRaw, type RawConnection } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { upload } from '../support/service-client.ts';
import { type SlowService, startSlowService } from '../support/slow-service.ts';

/**
 * Maximum time until davgate has ended, in ms. davgate itself allows 10 s and a busy machine adds to it; each request,
 * drive or login that davgate wrongly waits for takes half a minute.
 */
const END_MS_MAX = 25_000;

/** Size of a file, in bytes: more than the buffers of two sockets hold. */
const LONG_BYTES = 40 * 1024 * 1024;

let service: TestService;
let remote: Remote & { close(): Promise<void> };
beforeAll(async () => {
  service = await startTestService();
  const { url, token } = service;
  const urls = { apiUrl: url, contentUrl: url, notifyUrl: url };
  remote = createRemote({ ...urls, credentials: { token }, root: '', clock: systemClock, log: silentLog });
});
afterAll(async () => {
  await remote.close();
  await service.close();
});

interface Gateway {
  readonly program: Program;
  readonly dataDirectory: string;
  /** Starts davgate again, with the same data directory. */
  readonly start: () => Promise<Program>;
  /** The proxy between the gateway and its service. */
  readonly slow: SlowService;
  readonly ask: (method: string, path: string, body?: string | Uint8Array) => Promise<number>;
  /**
   * Sends the head of a request and `body`, which may be a part of its body, on a connection of its own; resolves when
   * davgate has read them. `authorization` replaces the tester's.
   */
  readonly open: (
    method: string,
    path: string,
    lines?: string,
    body?: string,
    authorization?: string,
  ) => Promise<RawConnection>;
}

/** Stores a large file at the service, not through a gateway, whose calls might take longer than their deadline. */
async function store(name: string, body: Uint8Array): Promise<void> {
  const { status } = await upload(service, 'files/upload', { path: `/${name}` }, { body });
  expect(status).toBe(200);
}

/** Runs `work` with a gateway of its own for the service; closes and removes it afterwards. */
async function withGateway(
  args: readonly string[],
  work: (gateway: Gateway) => Promise<void>,
): Promise<void> {
  const data = await temporaryDirectory();
  const slow = await startSlowService(service.url);
  const ofService = ['--api-url', slow.url, '--token', service.token];
  const programs: Program[] = [];
  const start = async () => {
    const program = await startProgram({ dataDirectory: data.path, args: [...ofService, ...args] });
    programs.push(program);
    return program;
  };
  const connections: RawConnection[] = [];
  try {
    const program = await start();
    await work({
      program,
      dataDirectory: data.path,
      start,
      slow,
      ask: (method, path, body) => ask(program, method, path, body),
      async open(method, path, lines = '', body = '', authorization = program.authorization) {
        const host = 'HTTP/1.1\r\nHost: 127.0.0.1\r\n';
        const head = `${method} /${path} ${host}Authorization: ${authorization}\r\n${lines}\r\n`;
        // The answer to the first request means that davgate has read the second one too.
        const connection = connectRaw(portOf(program), `GET /.davgate/healthz ${host}\r\n${head}${body}`);
        connections.push(connection);
        await connection.until('"status":"ok"');
        return connection;
      },
    });
  } finally {
    for (const { socket } of connections) socket.destroy();
    for (const program of programs) await program.kill();
    await slow.close();
    await data.remove();
  }
}

/** Statuses of a change that has been made: 204 and 405 when an attempt has made it that was answered 503. */
const MADE = [201, 204, 405];

/**
 * Returns the status of the answer. Like a client it asks again after 503, which a busy machine causes: all tests of this file
 * run at once, and the calls of davgate may take longer than their deadline.
 */
async function ask(
  { url, authorization }: Pick<Program, 'url' | 'authorization'>,
  method: string,
  path: string,
  body?: string | Uint8Array,
): Promise<number> {
  for (;;) {
    const answer = await fetch(url + path, {
      method,
      headers: { authorization },
      body: body ?? null,
    });
    await answer.arrayBuffer();
    if (answer.status !== 503) return answer.status;
    await pause(200);
  }
}

function portOf({ url }: Pick<Program, 'url'>): number {
  return Number(new URL(url).port);
}

/** Sends SIGTERM; checks that the program ends in time with exit code 0. */
async function expectToEnd(program: Pick<Program, 'stop' | 'output'>): Promise<void> {
  const start = performance.now();
  const code = await program.stop();
  const ms = performance.now() - start;
  expect(code, program.output()).toBe(0);
  expect(ms, program.output()).toBeLessThan(END_MS_MAX);
}

/** Returns the sizes of the files in a folder at the service, by name. */
async function filesAtService(folder: Path): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {};
  const pages = remote.list(folder, { recursive: false });
  for await (const { changes } of pages)
    for (const change of changes)
      if (change.kind === 'put' && change.entry.kind === 'file')
        sizes[change.entry.name] = change.entry.sizeBytes;
  return sizes;
}

test.concurrent('SIGTERM ends davgate in time while requests wait for a service that never answers', () =>
  withGateway([], async ({ program, slow, ask, open }) => {
    expect(MADE).toContain(await ask('PUT', 'silent-a', 'a'));
    expect(MADE).toContain(await ask('MKCOL', 'silent-folder'));
    slow.pace = 'silent';
    await open('GET', 'silent-a');
    await open('PROPFIND', 'silent-folder/', 'Depth: 1\r\n');
    await open('PUT', 'silent-b', 'Content-Length: 1\r\n', 'b');
    await open('MOVE', 'silent-a', `Destination: ${program.url}silent-c\r\n`);
    await eventually(() => expect(slow.slowed).toBeGreaterThan(0));
    await expectToEnd(program);
  }));

test.concurrent('SIGTERM ends davgate in time while answers of the service arrive slowly, and cuts the download short', () =>
  withGateway([], async ({ program, slow, ask, open }) => {
    expect(MADE).toContain(await ask('PUT', 'dripping-a', pseudoRandomBytes(100_000, 1)));
    slow.pace = 'dripping';
    const download = await open('GET', 'dripping-a');
    await open('PUT', 'dripping-b', 'Content-Length: 1\r\n', 'b');
    await eventually(() => expect(slow.slowed).toBeGreaterThan(0));
    await expectToEnd(program);
    // The connection is closed early, so the client knows that its download is not whole.
    expect((await download.closed()).length).toBeLessThan(100_000);
  }));

test.concurrent('SIGTERM right after a download ends davgate in time although clients keep idle connections, closes them, and leaves all blocks of the download in the cache', () =>
  withGateway([], async ({ program, dataDirectory, ask, open }) => {
    const used = await open('OPTIONS', '');
    await used.until('DAV: ');
    await store('downloaded', pseudoRandomBytes(3 * BLOCK_BYTES, 1));
    expect(await ask('GET', 'downloaded')).toBe(200);
    // At the end, because davgate answers a header that takes longer than 30 s.
    const half = connectRaw(portOf(program), 'GET / HT');
    await expectToEnd(program);
    expect(await half.closed()).toBe('');
    await used.closed();
    expect(program.output()).not.toMatch(/cut off|stops before everything is closed/);
    const paths = await readdir(joinFiles(dataDirectory, 'cache/v1'), { recursive: true });
    expect(paths.filter((path) => /^[0-9a-f]{2}.[^/]+$/.test(path))).toHaveLength(3);
  }));

test.concurrent('SIGTERM ends davgate in time while a client sends slowly and another does not take its download, and nothing of the sent file is stored', () =>
  withGateway([], async ({ program, open }) => {
    await store('slow-download', Buffer.alloc(LONG_BYTES));
    const download = await open('GET', 'slow-download');
    await download.until(`Content-Length: ${LONG_BYTES}`);
    download.socket.pause();
    const upload = await open('PUT', 'slow-upload', 'Content-Length: 1000000\r\nExpect: 100-continue\r\n');
    await upload.until('100 Continue');
    const timer = setInterval(() => upload.socket.writable && upload.send('a'), 100);
    await expectToEnd(program);
    clearInterval(timer);
    expect(await upload.closed()).not.toContain(' 201 ');
    expect(Object.keys(await filesAtService(ROOT))).not.toContain('slow-upload');
  }));

test.concurrent('SIGTERM answers logins that are delayed after wrong passwords, and ends davgate in time', () =>
  withGateway([], async ({ program, open }) => {
    const wrong = (password: string) => `Basic ${Buffer.from(`tester:${password}`).toString('base64')}`;
    for (let guess = 0; guess < 5; guess++)
      expect(await ask({ url: program.url, authorization: wrong(`guess ${guess}`) }, 'OPTIONS', '')).toBe(
        401,
      );
    // One after the other they would be delayed for most of a minute.
    const delayed = await Promise.all(
      Array.from({ length: 6 }, (_, index) => open('OPTIONS', '', '', '', wrong(`delayed ${index}`))),
    );
    await expectToEnd(program);
    const answers = await Promise.all(delayed.map((connection) => connection.closed()));
    expect(answers.filter((answer) => /429 Too Many Requests|401 Unauthorized/.test(answer))).toHaveLength(6);
    expect(answers.some((answer) => answer.includes('429 Too Many Requests'))).toBe(true);
    expect(program.output()).not.toContain('cut off');
  }));

test.concurrent('SIGTERM ends davgate in time with pending writes and a silent service, and they are sent after the next start', () =>
  withGateway(['--write-mode', 'back'], async ({ program, slow, ask, start }) => {
    expect(MADE).toContain(await ask('MKCOL', 'journal'));
    expect(MADE).toContain(await ask('PUT', 'journal/before', 'x'));
    expect(await ask('PROPFIND', 'journal')).toBe(207);
    slow.pace = 'silent';
    const acknowledged = { large: 5_000_000, 'small-0': 2, 'small-1': 2, 'small-2': 2 };
    for (const [name, sizeBytes] of Object.entries(acknowledged))
      expect(await ask('PUT', `journal/${name}`, Buffer.alloc(sizeBytes))).toBe(201);
    await expectToEnd(program);
    expect(program.output()).toContain('stay in the journal until the next start');
    slow.pace = 'well';
    await start();
    await eventually(async () =>
      expect(await filesAtService(join(ROOT, 'journal'))).toEqual({ before: 1, ...acknowledged }),
    );
  }));

test.concurrent('SIGTERM ends davgate in time with four drives whose service does not answer', async () => {
  const data = await temporaryDirectory();
  const slow = await startSlowService(service.url);
  const file = joinFiles(data.path, 'davgate.json');
  const drive = { 'api-url': slow.url, token: service.token };
  const names = ['a', 'b', 'c', 'd'];
  const drives = Object.fromEntries(names.map((name) => [name, drive]));
  const users = names.map((name) => ({ name, 'password-hash': cheapHash('pass'), drive: name }));
  await writeFile(file, JSON.stringify({ 'write-mode': 'back', drives, users }));
  const program = await startProgram({
    dataDirectory: data.path,
    login: 'configured',
    args: ['--config', file],
  });
  try {
    const authorizations = names.map((name) => `Basic ${Buffer.from(`${name}:pass`).toString('base64')}`);
    for (const authorization of authorizations)
      expect(await ask({ ...program, authorization }, 'PROPFIND', '')).toBe(207);
    slow.pace = 'silent';
    for (const [index, authorization] of authorizations.entries())
      expect(await ask({ ...program, authorization }, 'PUT', `drive-${index}`, 'x')).toBe(201);
    await expectToEnd(program);
  } finally {
    await program.kill();
    await slow.close();
    await data.remove();
  }
});

test.concurrent.each(['SIGTERM', 'SIGINT'] as const)('a second %s ends davgate at once', (signal) =>
  withGateway([], async ({ program, open }) => {
    const upload = await open('PUT', `never-${signal}`, 'Content-Length: 1000\r\nExpect: 100-continue\r\n');
    await upload.until('100 Continue');
    process.kill(program.pid, 'SIGTERM');
    await eventually(async () => {
      await expect(ask(program, 'OPTIONS', '')).rejects.toThrow('fetch failed');
    });
    process.kill(program.pid, signal);
    expect(await program.ended()).toBe(1);
    expect(program.output()).not.toContain('cut off');
  }),
);

test.concurrent('SIGTERM ends davgate service in time while a client sends slowly and another does not take its download', async () => {
  const data = await temporaryDirectory();
  const program = await startServiceProgram(data.path);
  const port = portOf(program);
  const head = (call: string, arg: object, lines: string) =>
    `POST /2/files/${call} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${program.token}\r\n` +
    `Dropbox-API-Arg: ${JSON.stringify(arg)}\r\n${lines}\r\n`;
  const octets = 'Content-Type: application/octet-stream\r\n';
  try {
    const large = connectRaw(
      port,
      head('upload', { path: '/large' }, `${octets}Content-Length: ${LONG_BYTES}\r\n`),
    );
    large.send(Buffer.alloc(LONG_BYTES));
    await large.until('content_hash');
    const download = connectRaw(port, head('download', { path: '/large' }, 'Content-Length: 0\r\n'));
    await download.until('\r\n\r\n');
    download.socket.pause();
    const upload = connectRaw(
      port,
      head('upload', { path: '/slow' }, `${octets}Content-Length: 9\r\nExpect: 100-continue\r\n`),
    );
    await upload.until('100 Continue');
    upload.send('a');
    await expectToEnd(program);
    for (const { socket } of [large, download, upload]) socket.destroy();
  } finally {
    await program.kill();
    await data.remove();
  }
});
