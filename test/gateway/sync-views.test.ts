import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseReport, sendReport } from '../support/follower.ts';
import {
  GatewayClient,
  type GatewayOptions,
  startTestGateway,
  type TestGateway,
} from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

// REPORT sync-collection for users who see parts of a drive.

const views: NonNullable<GatewayOptions['views']> = {
  ruled: [{ at: '/', root: '/Shared', folders: [{ path: '/Hidden', right: 'hidden' }] }],
  later: [{ at: '/', root: '/Shared' }],
  ann: [{ at: '/', root: '/Homes/ann' }],
  bob: [{ at: '/', root: '/Homes/bob' }],
  both: [
    { at: '/Mine', root: '/Homes/ann' },
    { at: '/Shared', root: '/Shared' },
  ],
};

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  for (const path of ['/Homes/ann/a.txt', '/Homes/bob/b.txt', '/Shared/s.txt', '/secret.txt'])
    await put(service, path, path);
  gateway = await startTestGateway({ service, views });
  client = new GatewayClient(gateway.url);
});

afterEach(async () => {
  client.close();
  await gateway.close();
  await service.close();
});

const report = async (folder: string, token = '', options = {}) =>
  parseReport(await sendReport(client, folder, token, options));

const states = (rows: readonly (readonly [string, string])[]) =>
  rows.map(([href, state]) => [href, state.startsWith('"') ? 'file' : state]);

test('a user with a root folder never sees a path, a change or a token of what is above or beside it', async () => {
  const first = await sendReport(client, '/', '', { user: 'ann' });
  const { token, rows } = await parseReport(first);
  expect(states(rows)).toEqual([['/a.txt', 'file']]);
  await put(service, '/secret2.txt', 's');
  await put(service, '/Homes/bob/c.txt', 'c');
  await put(service, '/Homes/ann/new.txt', 'n');
  const next = await sendReport(client, '/', token, { user: 'ann' });
  expect(states((await parseReport(next)).rows)).toEqual([['/new.txt', 'file']]);
  // Random text can contain any short word.
  const plain = [first, next].map(({ body }) => body.toString().replace(/<D:sync-token>.*?</, '<')).join();
  expect(plain).not.toMatch(/Homes|secret|bob/i);
  const decoded = Buffer.from(token.split('/').at(-1) ?? '', 'base64url').toString('latin1');
  expect(decoded).not.toMatch(/Homes|ann/i);
  const { status, body } = await sendReport(client, '/', token, { user: 'bob' });
  expect([status, body.toString()]).toEqual([403, expect.stringContaining('valid-sync-token')]);
});

test('two folders at the top are followed together, and each alone', async () => {
  const all = await report('/', '', { user: 'both' });
  expect(states(all.rows)).toEqual([
    ['/Mine/', 'folder'],
    ['/Mine/a.txt', 'file'],
    ['/Shared/', 'folder'],
    ['/Shared/s.txt', 'file'],
  ]);
  const alone = await report('/Shared', '', { user: 'both' });
  await put(service, '/Shared/t.txt', 't');
  await put(service, '/Homes/ann/t.txt', 't');
  expect(states((await report('/', all.token, { user: 'both' })).rows)).toEqual([
    ['/Mine/t.txt', 'file'],
    ['/Shared/t.txt', 'file'],
  ]);
  expect(states((await report('/Shared', alone.token, { user: 'both' })).rows)).toEqual([
    ['/Shared/t.txt', 'file'],
  ]);
});

test('the root folder of a user that is deleted and made again makes the token invalid', async () => {
  const { token } = await report('/', '', { user: 'ann' });
  await rpc(service, 'files/delete_v2', { path: '/Homes' });
  await put(service, '/Homes/ann/other.txt', 'o');
  const { status, body } = await sendReport(client, '/', token, { user: 'ann' });
  expect([status, body.toString()]).toEqual([403, expect.stringContaining('valid-sync-token')]);
});

test('a hidden folder is in no report, and a token is not valid with other rights', async () => {
  await put(service, '/Shared/Hidden/h.txt', 'h');
  const first = await report('/', '', { user: 'ruled' });
  expect(states(first.rows)).toEqual([['/s.txt', 'file']]);
  await put(service, '/Shared/Hidden/i.txt', 'i');
  await rpc(service, 'files/delete_v2', { path: '/Shared/Hidden/h.txt' });
  await put(service, '/Shared/t.txt', 't');
  expect(states((await report('/', first.token, { user: 'ruled' })).rows)).toEqual([['/t.txt', 'file']]);
  const { status, body } = await sendReport(client, '/', first.token, { user: 'later' });
  expect([status, body.toString()]).toEqual([403, expect.stringContaining('valid-sync-token')]);
});
