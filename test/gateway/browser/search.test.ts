import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type FailingFront, startFailingFront } from '../../support/failing-front.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc } from '../../support/service-client.ts';

// `/.davgate/api/search`: the search of the web application.

let service: TestService;
let front: FailingFront;
let gateway: TestGateway;
let behindFront: Parameters<typeof startTestGateway>[0]['service'];

beforeAll(async () => {
  service = await startTestService();
  await put(service, '/Elsewhere/Report.txt', 'outside');
  await put(service, '/Drive/2024/Report.txt', 'text');
  await rpc(service, 'files/create_folder_v2', { path: '/Drive/Reports' });
  await put(service, '/Drive/._Report', 'hidden');
  const paths = Array.from({ length: 101 }, (_, index) => `/Drive/Many/item ${index}`);
  await rpc(service, 'files/create_folder_batch', { paths, force_async: false });
  front = await startFailingFront(service.url);
  const { appKey, appSecret, refreshToken } = service;
  behindFront = { url: front.url, appKey, appSecret, refreshToken };
  gateway = await startTestGateway({ service: behindFront, root: '/Drive' });
});
afterEach(() => front.comeBack());
afterAll(async () => {
  await gateway.close();
  await front.close();
  await service.close();
});

interface Found {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly cursor: string | null;
}

const asked = (values: Readonly<Record<string, string>>, at = gateway.url) =>
  fetch(`${at}/.davgate/api/search?${new URLSearchParams(values)}`);

async function found(values: Readonly<Record<string, string>>): Promise<Found> {
  const answer = await asked(values);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Found;
}

test('search answers the files and folders of the whole drive, with the entity tag of each file', async () => {
  const { items, cursor } = await found({ query: 'report' });
  const { headers } = await fetch(`${gateway.url}/2024/Report.txt`);
  expect(items.toSorted((one, other) => (String(one['path']) < String(other['path']) ? -1 : 1))).toEqual([
    {
      kind: 'file',
      path: '/2024/Report.txt',
      sizeBytes: 4,
      modifiedMs: Date.parse(headers.get('last-modified') ?? ''),
      etag: headers.get('etag'),
    },
    { kind: 'folder', path: '/Reports' },
  ]);
  expect(cursor).toBeNull();
});

test('search answers 100 items and a cursor, which leads to the rest', async () => {
  const first = await found({ query: 'item' });
  const rest = await found({ query: 'item', cursor: first.cursor ?? '' });
  const paths = [...first.items, ...rest.items].map(({ path }) => path);
  expect([first.items.length, new Set(paths).size, rest.cursor]).toEqual([100, 101, null]);
});

test.each([
  ['without a query', {}],
  ['with a query of spaces', { query: '  ' }],
  ['with a query of 1,001 characters', { query: 'x'.repeat(1001) }],
])('search %s is refused with 400', async (_how, values: Record<string, string>) => {
  expect((await asked(values)).status).toBe(400);
});

test('search with a cursor that the service does not know answers 503', async () => {
  expect((await asked({ query: 'report', cursor: 'unknown' })).status).toBe(503);
});

test('search while the service is away answers 503 and says that the service cannot be reached', async () => {
  const impatient = await startTestGateway({ service: behindFront, root: '/Drive', deadlineMs: 300 });
  onTestFinished(() => impatient.close());
  front.leave('reset');
  const answer = await asked({ query: 'report' }, impatient.url);
  expect([answer.status, (await answer.text()).trim()]).toEqual([
    503,
    'the storage service cannot be reached',
  ]);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
});
