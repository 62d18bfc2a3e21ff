import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { withSharedDirectory } from '../../src/service/directory/postgres/postgres-directory.ts';
import { openPool } from '../../src/service/postgres/connect.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import { makeFolder } from '../../src/util/make-folder.ts';
import { eventually, expectSoon } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc, send, sharedLink, upload } from '../support/service-client.ts';

/** Accounts with a link. */
const ACCOUNTS = 5;

const HOUR_MS = 60 * 60 * 1000;

/** Loops of a service that sleep for an hour: its housekeeping, and the notes that its folder for arriving blocks is in use. */
const HOURLY_LOOPS = 2;

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

/** Starts services on one database and one folder of blocks. They answer each other's tokens. */
async function servicesOnOne(
  count: number,
  url?: string,
  log: Log = silentLog,
): Promise<readonly TestService[]> {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-shared-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const blocks = { folder: join(folder, 'blocks') };
  makeFolder(blocks.folder);
  const metadata = url ?? (await postgres.newDatabase());
  const services = await Promise.all(
    Array.from({ length: count }, () => startTestService({ metadata, blocks, log })),
  );
  for (const service of services) onTestFinished(() => service.close());
  return services;
}

async function two(url?: string): Promise<readonly [TestService, TestService]> {
  const [one, other] = await servicesOnOne(2, url);
  if (!one || !other) throw new Error('not two');
  return [one, { ...other, token: one.token }];
}

test('a file that is uploaded at one service is listed and read at the other at once', async () => {
  const [one, other] = await two();
  for (let count = 0; count < 20; count++) {
    await put(one, `/folder/f${count}`, `text ${count}`);
    expect((await download(other, `/folder/f${count}`)).text).toBe(`text ${count}`);
    const { json } = await rpc(other, 'files/list_folder', { path: '/folder' });
    expect((json as { entries: unknown[] }).entries).toHaveLength(count + 1);
  }
});

test('a long poll at one service ends when the other commits a change', async () => {
  const [one, other] = await two();
  const { json } = await rpc(one, 'files/list_folder/get_latest_cursor', { path: '', recursive: true });
  const polling = rpc(one, 'files/list_folder/longpoll', json, { token: null });
  await put(other, '/new', 'text');
  expect((await polling).json).toMatchObject({ changes: true });
  const changes = await rpc(one, 'files/list_folder/continue', json);
  expect(changes.json).toMatchObject({ entries: [{ path_lower: '/new' }], has_more: false });
});

test('a token that one service revokes is refused by the other from the next call on', async () => {
  const [one, other] = await two();
  expect((await rpc(other, 'users/get_current_account', null)).status).toBe(200);
  expect((await rpc(one, 'auth/token/revoke', null)).status).toBe(200);
  expect((await rpc(other, 'users/get_current_account', null)).status).toBe(401);
});

test('a link that one service makes is served by the other, until it is revoked', async () => {
  const [one, other] = await two();
  await put(one, '/shared', 'shared text');
  const link = new URL(await sharedLink(one, '/shared'));
  link.searchParams.delete('dl');
  link.searchParams.set('raw', '1');
  const there = `${other.url}${link.pathname}${link.search}`;
  expect((await send(there, {})).text).toBe('shared text');
  await rpc(one, 'sharing/revoke_shared_link', { url: link.href });
  expect((await send(there, {})).status).toBe(404);
});

test('a batch that one service has begun is finished, as the other shows', async () => {
  const [one, other] = await two();
  await put(one, '/f', 'text');
  const { json } = await rpc(one, 'files/delete_batch', { entries: [{ path: '/f' }, { path: '/none' }] });
  const { async_job_id } = json as { async_job_id: string };
  const check = () => rpc(other, 'files/delete_batch/check', { async_job_id });
  await eventually(async () => {
    expect((await check()).json).toMatchObject({
      '.tag': 'complete',
      entries: [{ '.tag': 'success' }, { '.tag': 'failure' }],
    });
  });
  expect((await rpc(other, 'files/get_metadata', { path: '/f' })).status).toBe(409);
});

test('an account that one service creates has its files at the other', async () => {
  const [one, other] = await two();
  const account = await one.service.addAccount({
    email: 'ann@example.org',
    givenName: 'Ann',
    surname: 'A',
    mayDeletePermanently: true,
  });
  const token = await one.service.grant({ accountId: account.id, scopes: SCOPES });
  await put({ ...one, token }, '/hers', 'text');
  expect((await download({ ...other, token }, '/hers')).text).toBe('text');
  expect((await download(other, '/hers')).status).toBe(409);
});

test('a quota that was lowered and raised again holds at a service that no call has reached meanwhile', async () => {
  const metadata = await postgres.newDatabase();
  const [one, other] = await two(metadata);
  const { id } = await one.service.addAccount({
    email: 'ann@example.org',
    givenName: 'Ann',
    surname: 'A',
    mayDeletePermanently: true,
    limitBytes: 10_000_000,
  });
  const token = await one.service.grant({ accountId: id, scopes: SCOPES });
  const quotaAt = async (service: TestService) => {
    const { json } = await rpc({ ...service, token }, 'users/get_space_usage', null);
    return (json as { allocation: { allocated: number } }).allocation.allocated;
  };
  const change = (limitBytes: number) =>
    withSharedDirectory(metadata, ({ accounts }) => accounts.change(id, { limitBytes }));
  expect(await quotaAt(one)).toBe(10_000_000);
  await change(5_000_000);
  expect(await quotaAt(other)).toBe(5_000_000);
  await change(10_000_000);
  // The first call learns of the lower one.
  await quotaAt(one);
  expect(await quotaAt(one)).toBe(10_000_000);
});

test('without its database a service answers 503 with Retry-After, and never that a file is gone', async () => {
  const own = await startPostgres();
  const folder = await mkdtemp(join(tmpdir(), 'davgate-shared-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const service = await startTestService({
    metadata: await own.newDatabase(),
    blocks: { folder },
  });
  onTestFinished(() => service.close());
  await put(service, '/f', 'text');
  await own.close();
  for (const answer of [
    await rpc(service, 'files/get_metadata', { path: '/f' }),
    await download(service, '/f'),
    await upload(service, 'files/upload', { path: '/g' }, { body: 'text' }),
    await rpc(service, 'files/delete_v2', { path: '/f' }),
  ]) {
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('5');
  }
});

test('housekeeping removes the links of items that are gone where the metadata of their account is loaded, and loads none for that', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-shared-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [metadata, clock] = [await postgres.newDatabase(), new ManualClock()];
  const start = async () => {
    const service = await startTestService({ metadata, blocks: { folder }, clock });
    onTestFinished(() => service.close());
    return service;
  };
  const pool = openPool(metadata, silentLog);
  onTestFinished(() => pool.end());
  const countOf = async (table: string) =>
    (await pool.query<{ count: number }>(`SELECT count(*) FROM davgate.${table}`)).rows[0]?.count;

  const one = await start();
  const tokens: string[] = [];
  for (let index = 0; index < ACCOUNTS; index++) {
    const person = {
      email: `u${index}@example.org`,
      givenName: 'U',
      surname: 'U',
      mayDeletePermanently: true,
    };
    const { id } = await one.service.addAccount(person);
    tokens.push(await one.service.grant({ accountId: id, scopes: SCOPES }));
  }
  const theirs = tokens.map((token) => ({ ...one, token }));
  for (const account of theirs) {
    await put(account, '/shared', 'text');
    await sharedLink(account, '/shared');
  }
  const last = theirs.at(-1);
  if (!last) throw new Error('no accounts');
  await put(last, '/gone', 'text');
  await sharedLink(last, '/gone');
  await rpc(last, 'files/permanently_delete', { path: '/gone' });
  // A whole round of this process, after which the round of another one has no namespace to look through.
  await clock.untilSleepingFor(HOUR_MS, HOURLY_LOOPS);
  await clock.advance(HOUR_MS);
  await clock.untilSleepingFor(HOUR_MS, HOURLY_LOOPS);
  await expectSoon(() => countOf('links')).toBe(ACCOUNTS);
  expect(await countOf('namespace WHERE tidied_tick = 0')).toBe(0);
  await rpc(last, 'files/permanently_delete', { path: '/shared' });
  for (const table of ['removal', 'doomed']) await expectSoon(() => countOf(table)).toBe(0);
  expect(await countOf('links')).toBe(ACCOUNTS);

  const other = await start();
  await clock.untilSleepingFor(HOUR_MS, 2 * HOURLY_LOOPS);
  await clock.advance(HOUR_MS);
  await expectSoon(() => countOf('links')).toBe(ACCOUNTS - 1);
  expect(await readdir(join(other.dataDirectory, 'copies'))).toEqual([]);
});

test('housekeeping removes the link of an item that is gone from an idle account before it searches the blocks of all services', async () => {
  const metadata = await postgres.newDatabase();
  const [earlier] = await servicesOnOne(1, metadata);
  if (!earlier) throw new Error('no service');
  await put(earlier, '/shared', 'text');
  await sharedLink(earlier, '/shared');
  await earlier.service.close();
  const pool = openPool(metadata, silentLog);
  onTestFinished(() => pool.end());
  await pool.query(
    `UPDATE davgate.links SET item_id = 'id:gone'; UPDATE davgate.namespace SET tidied_tick = 0`,
  );
  const client = await pool.connect();
  await client.query('BEGIN; LOCK TABLE davgate.lease');
  const warnings: string[] = [];
  await servicesOnOne(1, metadata, { ...silentLog, warn: (event) => warnings.push(event) });
  await expectSoon(async () => (await pool.query('SELECT FROM davgate.links')).rowCount).toBe(0);
  // The search still waits for the lease, or has not asked for it yet.
  expect(warnings).toEqual([]);
  client.release(true);
});
