import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type FailingFront, startFailingFront } from '../../support/failing-front.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc } from '../../support/service-client.ts';

// `/.davgate/api/thumbnail`: the small images of the web application.

let service: TestService;
let front: FailingFront;
let gateway: TestGateway;
let behindFront: Parameters<typeof startTestGateway>[0]['service'];

beforeAll(async () => {
  service = await startTestService();
  // Before the gateway starts, so that none of its listings is older.
  const large = sharp({ create: { width: 1000, height: 500, channels: 3, background: '#4a8' } });
  await put(service, '/large.png', await large.png().toBuffer());
  await put(service, '/text.png', 'no image');
  await put(service, '/text.txt', 'text');
  await rpc(service, 'files/create_folder_v2', { path: '/folder' });
  front = await startFailingFront(service.url);
  const { appKey, appSecret, refreshToken } = service;
  behindFront = { url: front.url, appKey, appSecret, refreshToken };
  gateway = await startTestGateway({ service: behindFront });
});
afterEach(() => front.comeBack());
afterAll(async () => {
  await gateway.close();
  await front.close();
  await service.close();
});

const revOf = async (path: string) => {
  const { headers } = await fetch(gateway.url + path, { method: 'HEAD' });
  return (headers.get('etag') ?? '').replaceAll('"', '');
};

const asked = (values: Readonly<Record<string, string>>, at = gateway.url) =>
  fetch(`${at}/.davgate/api/thumbnail?${new URLSearchParams(values)}`);

const refusalOf = async (answer: Response) => [answer.status, (await answer.text()).trim()];

test('thumbnail answers a small image of the revision, which browsers may keep', async () => {
  const answer = await asked({ path: '/large.png', rev: await revOf('/large.png') });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/webp']);
  expect(answer.headers.get('cache-control')).toBe('private, max-age=31536000, immutable');
  const { format, width, height } = await sharp(Buffer.from(await answer.arrayBuffer())).metadata();
  expect([format, width, height]).toEqual(['webp', 256, 128]);
});

test('thumbnail of another revision than the current one answers 404', async () => {
  expect(await refusalOf(await asked({ path: '/large.png', rev: '0123456789abc' }))).toEqual([
    404,
    '/large.png has changed; list its folder again',
  ]);
});

test.each(['/text.png', '/text.txt'])('thumbnail of %s, which is no image, answers 403', async (path) => {
  const answer = await asked({ path, rev: await revOf(path) });
  expect([answer.status, await answer.text()]).toEqual([
    403,
    expect.stringContaining(`the storage service has no small image of ${path}`),
  ]);
});

test('thumbnail of a folder answers 405, of nothing 404, and without a revision 400', async () => {
  expect((await asked({ path: '/folder', rev: 'x' })).status).toBe(405);
  expect((await asked({ path: '/nowhere', rev: 'x' })).status).toBe(404);
  expect((await asked({ path: '/large.png' })).status).toBe(400);
});

test('thumbnail while the service is away answers 503', async () => {
  const impatient = await startTestGateway({ service: behindFront, deadlineMs: 300 });
  onTestFinished(() => impatient.close());
  const rev = await revOf('/text.png');
  front.leave('reset');
  expect(await refusalOf(await asked({ path: '/text.png', rev }, impatient.url))).toEqual([
    503,
    'the storage service cannot be reached',
  ]);
});
