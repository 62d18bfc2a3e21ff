import { request } from 'node:http';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Uploads } from '../../../src/browser/upload.ts';
import { FileError } from '../../../src/drive/errors.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { eventually, expectSoon } from '../../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestService, type TestService } from '../../support/service.ts';

// Uploads in parts, as the web application sends large files; each test has a file name of its own.

const MIB = 1024 * 1024;
const BYTES = pseudoRandomBytes(10 * MIB, 1);

let service: TestService;
let gateway: TestGateway;
let path = '';
let files = 0;
/** The uploads that the running test has begun. */
const begun: string[] = [];

beforeAll(async () => {
  service = await startTestService();
  gateway = await startTestGateway({ service });
});
beforeEach(() => {
  files += 1;
  path = `/file ${files}.bin`;
});
afterEach(async () => {
  for (const id of begun.splice(0)) await call('end-upload', { id });
});
afterAll(async () => {
  await gateway.close();
  await service.close();
});

function call(name: string, values: Readonly<Record<string, string>>): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify(values);
  return fetch(new URL(`/.davgate/api/${name}`, gateway.url), { method: 'POST', headers, body });
}

async function begin(values: Readonly<Record<string, string>> = {}): Promise<string> {
  const answer = await call('upload', { path, size: String(BYTES.length), ...values });
  expect(answer.status).toBe(200);
  const { id } = (await answer.json()) as { readonly id: string };
  begun.push(id);
  return id;
}

function addressOf(name: string, values: Readonly<Record<string, string>>): URL {
  return new URL(`/.davgate/api/${name}?${new URLSearchParams(values)}`, gateway.url);
}

function send(id: string, start: number, end: number): Promise<Response> {
  const headers = { 'content-type': 'application/octet-stream' };
  const body = new Uint8Array(BYTES.subarray(start, end));
  return fetch(addressOf('upload-part', { id, offset: String(start) }), { method: 'POST', headers, body });
}

interface Progress {
  readonly receivedBytes: number;
  readonly isStored: boolean;
}

async function progressIn(answer: Response): Promise<Progress> {
  expect(answer.status).toBe(200);
  return (await answer.json()) as Progress; // the gateway's own answer
}

async function stateOf(id: string): Promise<Progress> {
  return progressIn(await fetch(addressOf('upload-state', { id })));
}

/** Begins to send all bytes from `start` on, but stops after those before `end`. Returns how to break the connection. */
async function sendSome(id: string, start: number, end: number): Promise<() => void> {
  const target = addressOf('upload-part', { id, offset: String(start) });
  const headers = { 'content-type': 'application/octet-stream', 'content-length': BYTES.length - start };
  const outgoing = request(target, { method: 'POST', headers });
  outgoing.on('error', () => undefined);
  await new Promise((resolve) => outgoing.write(BYTES.subarray(start, end), resolve));
  return () => outgoing.destroy();
}

function dav(method: string, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(encodeURI(path), gateway.url), { method, ...init });
}

async function stored(): Promise<Buffer> {
  const answer = await dav('GET');
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

test('a file that is sent in parts is stored when its last byte has arrived, and is not there before', async () => {
  const id = await begin({ modified: '1700000000000' });
  expect(await progressIn(await send(id, 0, 3 * MIB))).toEqual({ receivedBytes: 3 * MIB, isStored: false });
  expect((await dav('HEAD')).status).toBe(404);
  expect(await progressIn(await send(id, 3 * MIB, BYTES.length))).toEqual({
    receivedBytes: BYTES.length,
    isStored: true,
  });
  expect((await stored()).equals(BYTES)).toBe(true);
  expect((await dav('HEAD')).headers.get('last-modified')).toBe('Tue, 14 Nov 2023 22:13:20 GMT');
});

test('an upload whose connection breaks goes on after the bytes that have arrived', async () => {
  const id = await begin();
  const leave = await sendSome(id, 0, 5 * MIB);
  leave();
  const { receivedBytes } = await stateOf(id);
  expect(receivedBytes).toBeGreaterThan(0);
  expect((await progressIn(await send(id, receivedBytes, BYTES.length))).isStored).toBe(true);
  expect((await stored()).equals(BYTES)).toBe(true);
});

test('a new part takes over from one whose connection is open, but silent', async () => {
  const id = await begin();
  const leave = await sendSome(id, 0, 2 * MIB);
  await expectSoon(async () => (await stateOf(id)).receivedBytes).toBeGreaterThan(0);
  const { receivedBytes } = await stateOf(id);
  expect((await progressIn(await send(id, receivedBytes, BYTES.length))).isStored).toBe(true);
  leave();
  expect((await stored()).equals(BYTES)).toBe(true);
});

test('two parts that are sent at the same time store each byte once', async () => {
  const id = await begin();
  const statuses = (await Promise.all([send(id, 0, BYTES.length), send(id, 0, BYTES.length)])).map(
    ({ status }) => status,
  );
  expect(statuses.every((status) => status === 200 || status === 416)).toBe(true);
  const { receivedBytes, isStored } = await stateOf(id);
  if (!isStored) await send(id, receivedBytes, BYTES.length);
  expect((await stored()).equals(BYTES)).toBe(true);
});

test('a part that begins at another byte than the next one is refused with 416, and changes nothing', async () => {
  const id = await begin();
  await send(id, 0, MIB);
  const refused = await send(id, 2 * MIB, 3 * MIB);
  expect([refused.status, await refused.text()]).toEqual([
    416,
    `byte ${MIB} of the upload is next, not byte ${2 * MIB}\n`,
  ]);
  expect((await stateOf(id)).receivedBytes).toBe(MIB);
});

test('upload-state returns the outcome of an upload whose last answer was lost', async () => {
  const id = await begin();
  const leave = await sendSome(id, 0, BYTES.length);
  await expectSoon(async () => (await dav('HEAD')).status).toBe(200);
  leave();
  expect(await stateOf(id)).toEqual({ receivedBytes: BYTES.length, isStored: true });
});

test('upload-state answers 404 when the drive was too busy for the file, which can be begun again', async () => {
  const patient = gateway;
  gateway = await startTestGateway({ service, deadlineMs: 1_000 });
  try {
    const id = await begin();
    service.service.setFaults({ 'error-write-share': 1 });
    expect((await send(id, 0, BYTES.length)).status).toBe(503);
    service.service.setFaults({});
    expect((await fetch(addressOf('upload-state', { id }))).status).toBe(404);
    expect((await progressIn(await send(await begin(), 0, BYTES.length))).isStored).toBe(true);
    expect((await stored()).equals(BYTES)).toBe(true);
  } finally {
    service.service.setFaults({});
    await gateway.close();
    gateway = patient;
  }
});

test('an upload to a path that is taken is refused with 412 before its bytes are sent', async () => {
  await dav('PUT', { body: 'old' });
  expect((await call('upload', { path, size: '10' })).status).toBe(412);
  expect((await stored()).toString()).toBe('old');
});

test('a file that appears during the upload is not replaced', async () => {
  const id = await begin();
  await send(id, 0, 5 * MIB);
  await dav('PUT', { body: 'theirs' });
  expect((await send(id, 5 * MIB, BYTES.length)).status).toBe(412);
  expect((await stored()).toString()).toBe('theirs');
});

test('with replace=yes an upload replaces a file when all of it has arrived', async () => {
  await dav('PUT', { body: 'old' });
  const id = await begin({ replace: 'yes' });
  await send(id, 0, 5 * MIB);
  expect((await stored()).toString()).toBe('old');
  await send(id, 5 * MIB, BYTES.length);
  expect((await stored()).equals(BYTES)).toBe(true);
});

test.each(['/.davgate', '/.DAVgate/file'])(
  'an upload to %s, which is davgate’s own, is refused with 403',
  async (own) => {
    const refused = await call('upload', { path: own, size: '3' });
    expect([refused.status, await refused.text()]).toEqual([
      403,
      'the folder /.davgate belongs to davgate itself; choose another path\n',
    ]);
  },
);

test('an upload to a file that somebody has locked is refused with 423', async () => {
  await dav('PUT', { body: 'old' });
  const body =
    '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
  expect((await dav('LOCK', { body })).status).toBe(200);
  expect((await call('upload', { path, size: '10', replace: 'yes' })).status).toBe(423);
});

test('a cancelled upload stores nothing, and its next part says so', async () => {
  const id = await begin();
  await send(id, 0, 5 * MIB);
  expect((await call('end-upload', { id })).status).toBe(200);
  await expectSoon(async () => (await send(id, 5 * MIB, BYTES.length)).status).toBe(400);
  expect((await dav('HEAD')).status).toBe(404);
});

test('more bytes than were announced are refused with 400', async () => {
  const id = await begin({ size: '1000' });
  expect((await send(id, 0, 2000)).status).toBe(400);
  expect((await dav('HEAD')).status).toBe(404);
});

test('a user can have ten unfinished uploads; one more is refused with 503 until one has ended', async () => {
  const name = path;
  for (let count = 0; count < 10; count++) {
    path = `${name} ${count}`;
    await begin();
  }
  path = `${name} more`;
  expect((await call('upload', { path, size: '10' })).status).toBe(503);
  await call('end-upload', { id: begun[0] ?? '' });
  await eventually(() => begin());
});

test('300 uploads that were refused and 300 that are stored leave room for more', async () => {
  await stateOf(await begin({ size: '0' }));
  for (let count = 0; count < 300; count++)
    expect((await call('upload', { path, size: '10' })).status).toBe(412);
  const name = path;
  for (let count = 0; count < 300; count++) {
    path = `${name} ${count}`;
    expect(await stateOf(await begin({ size: '0' }))).toEqual({ receivedBytes: 0, isStored: true });
  }
});

test('of ended uploads only the last ones are kept', async () => {
  const clock = new ManualClock();
  const uploads = new Uploads({ ofUser: 10, unfinished: 10, ended: 3 });
  const store = async () => {};
  const options = { user: 'ann', rights: '', sizeBytes: 0, clock, store };
  const ids: string[] = [];
  for (let count = 0; count < 6; count++) {
    const made = uploads.begin(options, new AbortController().signal);
    await made.progress();
    ids.push(made.id);
  }
  expect(ids.map((id) => uploads.get(id) !== undefined)).toEqual([false, false, true, true, true, true]);
});

test('a part that arrives while the drive refuses the file is answered with the refusal', async () => {
  const store = async (body: AsyncIterable<Uint8Array>) => {
    for await (const _ of body) break;
    await setImmediate();
    throw new FileError('busy', 'the drive is busy');
  };
  const options = { user: 'ann', rights: '', sizeBytes: 30, clock: new ManualClock(), store };
  const { signal } = new AbortController();
  const made = new Uploads().begin(options, signal);
  const pieces = Readable.from([Buffer.alloc(10), Buffer.alloc(10), Buffer.alloc(10)]);
  await expect(made.receive(pieces, 0, signal)).rejects.toThrow('the drive is busy');
});

test('an unknown upload is answered 404, and bytes of another type than octet-stream 415', async () => {
  expect((await send('unknown', 0, 10)).status).toBe(404);
  const id = await begin();
  const address = addressOf('upload-part', { id, offset: '0' });
  expect((await fetch(address, { method: 'POST', body: 'a form could send this' })).status).toBe(415);
});

test('an unfinished upload does not delay the end of the gateway', async () => {
  const own = await startTestGateway({ service });
  const body = JSON.stringify({ path: '/never.bin', size: '1000000' });
  const headers = { 'content-type': 'application/json' };
  await fetch(new URL('/.davgate/api/upload', own.url), { method: 'POST', headers, body });
  await own.close();
  path = '/never.bin';
  expect((await dav('HEAD')).status).toBe(404);
});
