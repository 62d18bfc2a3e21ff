import { type IncomingMessage, request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { headerJson, put, rpc } from '../support/service-client.ts';

/** Starts a service whose thumbnails are as large as the images say. */
async function startService(): Promise<TestService> {
  const renderProcess = new URL('../support/render-processes/large.mjs', import.meta.url);
  const service = await startTestService({ clock: new ManualClock(), renderProcess });
  onTestFinished(() => service.close());
  return service;
}

/** Calls a function of the service. Reads nothing of the answer but its header. */
function open(
  { url, token }: TestService,
  name: string,
  headers: object,
  body = '',
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(
      `${url}/2/files/${name}`,
      { method: 'POST', agent: false, headers: { authorization: `Bearer ${token}`, ...headers } },
      resolve,
    )
      .on('error', reject)
      .end(body);
  });
}

function openThumbnail(service: TestService, path: string): Promise<IncomingMessage> {
  const argument = headerJson({ resource: { '.tag': 'path', path } });
  return open(service, 'get_thumbnail_v2', { 'dropbox-api-arg': argument });
}

function openBatch(service: TestService, paths: readonly string[]): Promise<IncomingMessage> {
  const body = JSON.stringify({ entries: paths.map((path) => ({ path })) });
  return open(service, 'get_thumbnail_batch', { 'content-type': 'application/json' }, body);
}

async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Puts images with thumbnails of `mebibytes`. Returns their paths. */
async function putImages(service: TestService, count: number, mebibytes: number): Promise<readonly string[]> {
  const paths = Array.from({ length: count }, (_, index) => `/${mebibytes} MiB ${index}.png`);
  for (const path of paths) await put(service, path, String(mebibytes));
  return paths;
}

/** What the system keeps for a client that does not read, in thumbnails of 2 MiB, with a margin. */
const TAKEN_BY_SYSTEM = 12;

test('a batch of thumbnails that is not read makes no more of them, and continues when it is read', async () => {
  const service = await startService();
  const paths = await putImages(service, 25, 2);
  const others = await putImages(service, 25, 1);
  const answer = await openBatch(service, paths);
  expect(answer.statusCode).toBe(200);
  // Thumbnails of others take turns with those of the batch, which therefore could all be made meanwhile.
  let made = 0;
  for (const path of others) made = (await bytesOf(await openThumbnail(service, path)))[0] ?? 0;
  expect(made).toBeGreaterThan(others.length);
  expect(made).toBeLessThan(others.length + TAKEN_BY_SYSTEM);
  const { entries } = JSON.parse((await bytesOf(answer)).toString()) as {
    entries: { metadata: { path_display: string }; thumbnail: string }[];
  };
  expect(entries.map(({ metadata }) => metadata.path_display)).toEqual(paths);
  for (const { thumbnail } of entries) expect(Buffer.from(thumbnail, 'base64')).toHaveLength(2 * 1024 * 1024);
});

test('thumbnails that are not read hold 128 MiB at most: a further large one answers 429, a small one 200', async () => {
  const service = await startService();
  const [last = '', ...paths] = await putImages(service, 7, 20);
  const [small = ''] = await putImages(service, 1, 1);
  const unread = await Promise.all(paths.map((path) => openThumbnail(service, path)));
  expect(unread.map(({ statusCode }) => statusCode)).toEqual(Array(6).fill(200));
  const refused = await openThumbnail(service, last);
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, '5']);
  expect((await openThumbnail(service, small)).statusCode).toBe(200);
  const batch = await rpc(service, 'files/get_thumbnail_batch', {
    entries: [{ path: small }, { path: last }],
  });
  expect(batch.json).toMatchObject({
    entries: [{ '.tag': 'success' }, { '.tag': 'failure', failure: { '.tag': 'conversion_error' } }],
  });
  unread[0]?.destroy();
  await eventually(async () => {
    const answer = await openThumbnail(service, last);
    unread.push(answer);
    expect(answer.statusCode).toBe(200);
  });
  for (const answer of unread) answer.destroy();
});
