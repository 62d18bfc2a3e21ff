import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FaultSettingError, parseFaults } from '../../src/service/faults/switches.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { addApp, addPerson, tokenByConsent } from '../support/consent.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import {
  type Answered,
  download,
  headerJson,
  put,
  refreshedToken,
  refusal,
  refusalIn,
  rpc,
  upload,
} from '../support/service-client.ts';

let clock: ManualClock;
let service: TestService;

beforeEach(async () => {
  clock = new ManualClock();
  service = await startTestService({ clock });
  await put(service, '/file', 'content');
});

afterEach(() => service.close());

const metadataOf = (path: string) => rpc(service, 'files/get_metadata', { path });
const statusesOf = async (calls: number, call: () => Promise<Answered>) => {
  const statuses: number[] = [];
  for (let made = 0; made < calls; made++) statuses.push((await call()).status);
  return statuses;
};

async function downloaded(path: string, token = service.token): Promise<Buffer> {
  const response = await fetch(`${service.url}/2/files/download`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'dropbox-api-arg': headerJson({ path }) },
  });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

describe('rate fault', () => {
  test('rate-per-second refuses calls above the burst with Retry-After, and lets them in after that time', async () => {
    service.service.setFaults({ 'rate-per-second': 0.5, 'rate-burst': 3 });
    expect(await statusesOf(3, () => metadataOf('/file'))).toEqual([200, 200, 200]);
    const refused = await metadataOf('/file');
    expect(refusalIn(refused)).toEqual(
      refusal(429, 'too_many_requests', { reason: { '.tag': 'too_many_requests' }, retry_after: 2 }),
    );
    expect(refused.headers.get('retry-after')).toBe('2');
    await clock.advance(2000);
    expect(await statusesOf(2, () => metadataOf('/file'))).toEqual([200, 429]);
  });

  test('rate-text-share makes the 429 a text', async () => {
    service.service.setFaults({ 'rate-per-second': 1, 'rate-text-share': 1 });
    const [, refused] = [await metadataOf('/file'), await metadataOf('/file')];
    expect(refused.status).toBe(429);
    expect(refused.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(refused.headers.get('retry-after')).toBe('1');
  });

  test('rate-per-second counts all tokens of an app together, and not long polls or token requests', async () => {
    service.service.setFaults({ 'rate-per-second': 1 });
    expect((await metadataOf('/file')).status).toBe(200);
    const token = await refreshedToken(service);
    expect((await rpc(service, 'files/get_metadata', { path: '/file' }, { token })).status).toBe(429);
    const poll = await rpc(service, 'files/list_folder/longpoll', { cursor: 'none' }, { token: null });
    expect(poll.status).toBe(400);
  });
});

describe('contention-entry-share', () => {
  test('contention-entry-share refuses some entries of finish_batch_v2, which can be finished again', async () => {
    service.service.setFaults({ 'contention-entry-share': 0.5, seed: 3 });
    const started = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        upload(service, 'files/upload_session/start', { close: true }, { body: `text ${index}` }),
      ),
    );
    const entries = started.map(({ json }, index) => ({
      cursor: { session_id: (json as { session_id: string }).session_id, offset: `text ${index}`.length },
      commit: { path: `/batch/${index}` },
    }));
    const finish = async (asked: typeof entries) =>
      (
        (await rpc(service, 'files/upload_session/finish_batch_v2', { entries: asked })).json as {
          entries: { '.tag': string; name?: string; failure?: object }[];
        }
      ).entries;
    const outcomes = await finish(entries);
    const refusedEntries = entries.filter((_, index) => outcomes[index]?.['.tag'] === 'failure');
    expect(refusedEntries.length).toBeGreaterThan(3);
    expect(refusedEntries.length).toBeLessThan(17);
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome['.tag'] === 'success') expect(outcome.name).toBe(String(index));
      else expect(outcome).toEqual({ '.tag': 'failure', failure: { '.tag': 'too_many_write_operations' } });
    }
    const { json } = await rpc(service, 'files/list_folder', { path: '/batch' });
    expect((json as { entries: unknown[] }).entries).toHaveLength(20 - refusedEntries.length);
    service.service.setFaults({});
    const again = await finish(refusedEntries);
    expect(again.map((outcome) => outcome['.tag'])).toEqual(refusedEntries.map(() => 'success'));
  });
});

describe('contention-hold-ms', () => {
  const refusedWrite = refusal(429, 'too_many_write_operations', {
    reason: { '.tag': 'too_many_write_operations' },
    retry_after: 1,
  });

  test('contention-hold-ms refuses every write beside a running commit, and none after it', async () => {
    service.service.setFaults({ 'contention-hold-ms': 100 });
    const first = rpc(service, 'files/create_folder_v2', { path: '/a' });
    await clock.untilSleeping();
    const beside = [
      rpc(service, 'files/create_folder_v2', { path: '/b' }),
      rpc(service, 'files/delete_v2', { path: '/file' }),
      rpc(service, 'files/permanently_delete', { path: '/file' }),
      rpc(service, 'files/move_v2', { from_path: '/file', to_path: '/moved' }),
      rpc(service, 'files/copy_v2', { from_path: '/file', to_path: '/copied' }),
      upload(service, 'files/upload', { path: '/up' }, { body: 'x' }),
    ];
    for (const answered of await Promise.all(beside)) expect(refusalIn(answered)).toEqual(refusedWrite);
    await clock.advance(100);
    expect((await first).status).toBe(200);
    expect((await clock.during(rpc(service, 'files/delete_v2', { path: '/file' }))).json).toMatchObject({
      metadata: { name: 'file' },
    });
    const { json } = await rpc(service, 'files/list_folder', { path: '' });
    expect((json as { entries: { name: string }[] }).entries.map(({ name }) => name)).toEqual(['a']);
  });

  test('contention-hold-ms does not delay session parts and reads, and refuses a finish', async () => {
    service.service.setFaults({ 'contention-hold-ms': 100 });
    const first = rpc(service, 'files/create_folder_v2', { path: '/a' });
    await clock.untilSleeping();
    const started = await upload(service, 'files/upload_session/start', { close: true }, { body: 'part' });
    expect(started.status).toBe(200);
    expect((await metadataOf('/file')).status).toBe(200);
    const { session_id } = started.json as { session_id: string };
    const entry = { cursor: { session_id, offset: 4 }, commit: { path: '/finished' } };
    const batch = () => rpc(service, 'files/upload_session/finish_batch_v2', { entries: [entry] });
    expect(refusalIn(await upload(service, 'files/upload_session/finish', entry))).toEqual(refusedWrite);
    expect(refusalIn(await batch())).toEqual(refusedWrite);
    await clock.advance(100);
    await first;
    expect((await clock.during(batch())).json).toMatchObject({ entries: [{ '.tag': 'success' }] });
    expect((await downloaded('/finished')).toString()).toBe('part');
  });

  test('contention-hold-ms does not count an upload that is still sending its body', async () => {
    service.service.setFaults({ 'contention-hold-ms': 100 });
    let send: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        send = controller;
        controller.enqueue(Buffer.from('first'));
      },
    });
    const slow = fetch(`${service.url}/2/files/upload`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'content-type': 'application/octet-stream',
        'dropbox-api-arg': headerJson({ path: '/slow' }),
      },
      body,
      // undici requires `duplex` with a stream, and its type lacks it.
      ...{ duplex: 'half' },
    });
    const folder = rpc(service, 'files/create_folder_v2', { path: '/a' });
    expect((await clock.during(folder)).status).toBe(200);
    send?.close();
    expect((await clock.during(slow)).status).toBe(200);
  });
});

describe('error faults', () => {
  test('error shares fail the calls of their class alone, before they change anything', async () => {
    service.service.setFaults({ 'error-write-share': 1 });
    const answered = await rpc(service, 'files/delete_v2', { path: '/file' });
    expect([500, 502, 503]).toContain(answered.status);
    expect((await metadataOf('/file')).status).toBe(200);
    service.service.setFaults({ 'error-read-share': 1 });
    expect((await download(service, '/file')).status).toBeGreaterThanOrEqual(500);
    expect((await metadataOf('/file')).status).toBe(200);
    service.service.setFaults({ 'error-metadata-share': 1 });
    expect((await metadataOf('/file')).status).toBeGreaterThanOrEqual(500);
    expect((await downloaded('/file')).toString()).toBe('content');
  });

  test('error-burst fails calls in bursts, repeatably for the same seed', async () => {
    const seeded = (seed: number) => {
      service.service.setFaults({ 'error-metadata-share': 0.05, 'error-burst': 4, seed });
      return statusesOf(120, () => metadataOf('/file'));
    };
    const first = await seeded(3);
    const failed = first.map((status) => (status === 200 ? '.' : 'x')).join('');
    expect(failed).toMatch(/x/);
    for (const [burst] of failed.replace(/x+$/, '').matchAll(/x+/g)) expect(burst.length % 4).toBe(0);
    expect(await seeded(3)).toEqual(first);
    expect(await seeded(4)).not.toEqual(first);
  });
});

test('latency faults delay the calls of their class by that time', async () => {
  const waits = async (call: Promise<unknown>) => {
    await clock.untilSleeping();
    const { nextMs } = clock;
    await clock.during(call);
    return nextMs;
  };
  service.service.setFaults({
    'latency-metadata-ms': 50,
    'latency-read-ms': 60,
    'latency-write-ms': 100,
  });
  expect(await waits(metadataOf('/file'))).toBe(50);
  expect(await waits(download(service, '/file'))).toBe(60);
  expect(await waits(upload(service, 'files/upload', { path: '/new' }, { body: 'x' }))).toBe(100);
  expect(await waits(rpc(service, 'files/permanently_delete', { path: '/new' }))).toBe(100);
});

test('bandwidth-bytes-per-second limits uploads and downloads', async () => {
  const bytes = pseudoRandomBytes(100_000, 1);
  service.service.setFaults({ 'bandwidth-bytes-per-second': 10_000 });
  const startMs = clock.now();
  await clock.during(upload(service, 'files/upload', { path: '/big' }, { body: bytes }));
  const sentMs = clock.now();
  expect((sentMs - startMs) / 1000).toBeCloseTo(10, 0);
  expect((await clock.during(downloaded('/big'))).equals(bytes)).toBe(true);
  expect((clock.now() - sentMs) / 1000).toBeCloseTo(10, 0);
});

describe('download faults', () => {
  const bytes = pseudoRandomBytes(5_000_000, 2);
  beforeEach(async () => void (await put(service, '/big', bytes)));

  /** Returns the bytes received before the connection broke. */
  async function untilCut(path: string): Promise<Buffer> {
    const response = await fetch(`${service.url}/2/files/download`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'dropbox-api-arg': headerJson({ path }) },
    });
    const chunks: Uint8Array[] = [];
    await expect(async () => {
      for await (const chunk of response.body ?? []) chunks.push(chunk);
    }).rejects.toThrow();
    return Buffer.concat(chunks);
  }

  test('cut-after-bytes ends longer downloads after that many bytes and leaves shorter ones whole', async () => {
    service.service.setFaults({ 'cut-share': 1, 'cut-after-bytes': 4_500_000 });
    expect((await untilCut('/big')).equals(bytes.subarray(0, 4_500_000))).toBe(true);
    expect((await downloaded('/file')).toString()).toBe('content');
  });

  test('cut-share without cut-after-bytes ends downloads at random positions', async () => {
    service.service.setFaults({ 'cut-share': 1 });
    const lengths = [await untilCut('/big'), await untilCut('/big')].map(({ length }) => length);
    expect(lengths[0]).not.toBe(lengths[1]);
  });

  test('corrupt-share changes one byte of a download and none of the file', async () => {
    service.service.setFaults({ 'corrupt-share': 1 });
    const got = await downloaded('/big');
    expect(got.length).toBe(bytes.length);
    expect(got.filter((byte, at) => byte !== bytes[at])).toHaveLength(1);
    service.service.setFaults({});
    expect((await downloaded('/big')).equals(bytes)).toBe(true);
  });

  test('corrupt-share of 0.5 changes about half of the downloads', async () => {
    service.service.setFaults({ 'corrupt-share': 0.5 });
    let wrong = 0;
    for (let read = 0; read < 40; read++)
      if ((await downloaded('/file')).toString() !== 'content') wrong += 1;
    expect(wrong).toBeGreaterThan(8);
    expect(wrong).toBeLessThan(32);
  });
});

test('lost-answer-share does a write and drops its answer, and answers a refused write', async () => {
  service.service.setFaults({ 'lost-answer-share': 1 });
  await expect(put(service, '/lost', 'kept')).rejects.toThrow('other side closed');
  await expect(rpc(service, 'files/delete_v2', { path: '/file' })).rejects.toThrow('other side closed');
  const refused = await rpc(service, 'files/delete_v2', { path: '/none' });
  expect(refused.status).toBe(409);
  expect((await downloaded('/lost')).toString()).toBe('kept');
  expect((await metadataOf('/file')).status).toBe(409);
});

test('token-lifetime-seconds expires tokens of a refresh or a code, and not the permanent one', async () => {
  service.service.setFaults({ 'token-lifetime-seconds': 10 });
  const tokens = [await refreshedToken(service), await exchanged()];
  const calls = () =>
    Promise.all(tokens.map((token) => rpc(service, 'files/get_metadata', { path: '/file' }, { token })));
  await clock.advance(9_999);
  for (const { status } of await calls()) expect(status).toBe(200);
  await clock.advance(1);
  for (const answered of await calls())
    expect(refusalIn(answered)).toEqual(
      refusal(401, 'expired_access_token', { '.tag': 'expired_access_token' }),
    );
  expect((await metadataOf('/file')).status).toBe(200);
});

/** Returns an access token from the code flow. */
async function exchanged(): Promise<string> {
  const redirectUri = 'http://localhost:53682/';
  const { app, secret } = await addApp(service, { redirectUris: [redirectUri] });
  await addPerson(service, 'ann@example.org', 'correct horse');
  const token = await tokenByConsent(
    service,
    { key: app.key, secret, redirectUri },
    'ann@example.org',
    'correct horse',
  );
  await put({ ...service, token }, '/file', 'x');
  return token;
}

test('session-lifetime-seconds expires upload sessions, singly and in a batch', async () => {
  service.service.setFaults({ 'session-lifetime-seconds': 10 });
  const start = async () => {
    const { json } = await upload(service, 'files/upload_session/start', { close: true }, { body: 'part' });
    return (json as { session_id: string }).session_id;
  };
  const old = await start();
  await clock.advance(10_000);
  const cursor = { session_id: old, offset: 4 };
  const commit = { path: '/finished' };
  const fresh = { cursor: { session_id: await start(), offset: 4 }, commit };
  const appended = await upload(service, 'files/upload_session/append_v2', { cursor }, { body: 'x' });
  expect(refusalIn(appended)).toEqual(refusal(409, 'not_found', { '.tag': 'not_found' }));
  const gone = { '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_found' } };
  expect(refusalIn(await upload(service, 'files/upload_session/finish', { cursor, commit }))).toEqual(
    refusal(409, 'lookup_failed/not_found', gone),
  );
  const entries = [{ cursor, commit }, fresh];
  const { json } = await rpc(service, 'files/upload_session/finish_batch_v2', { entries });
  expect(json).toMatchObject({
    entries: [
      { '.tag': 'failure', failure: gone },
      { '.tag': 'success', name: 'finished' },
    ],
  });
});

describe('fault settings', () => {
  test('parseFaults reads settings, the last of a name winning', () => {
    expect(parseFaults(['latency-read-ms=50', 'cut-share=0.5', 'cut-share=1'])).toEqual({
      'latency-read-ms': 50,
      'cut-share': 1,
    });
  });

  test.each(['cut-share', 'cut-share=', 'cut-share=2', 'cut-share=-1', 'cut-share=x', 'toString=1', 'x=1'])(
    'parseFaults refuses %s by its name',
    (text) => {
      expect(() => parseFaults([text])).toThrow(FaultSettingError);
      expect(() => parseFaults([text])).toThrow(text.split('=')[0]);
    },
  );

  test('setFaults with an invalid value keeps the current faults', async () => {
    service.service.setFaults({ 'error-metadata-share': 1 });
    expect(() => service.service.setFaults({ 'cut-share': 7 })).toThrow(FaultSettingError);
    expect((await metadataOf('/file')).status).toBeGreaterThanOrEqual(500);
  });
});
