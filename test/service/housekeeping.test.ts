import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, refreshedToken, refusal, refusalIn, rpc, send, upload } from '../support/service-client.ts';
import { HOME, opened } from './storage/opened.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

let clock: ManualClock;
let service: TestService;

beforeEach(async () => {
  clock = new ManualClock();
  service = await startTestService({ clock });
});
afterEach(() => service.close());

/** Advances the clock by housekeeping rounds until `expectation` holds. */
const afterSomeRounds = (expectation: () => void | Promise<void>) =>
  eventually(async () => {
    await clock.advance(HOUR_MS);
    await expectation();
  });

/** Returns the number of rows in a table of the accounts database. */
function countOf(table: string): number {
  const database = new Sqlite(join(service.dataDirectory, 'accounts.sqlite'), { readonly: true });
  try {
    return Number(database.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
  } finally {
    database.close();
  }
}

async function linkTo(path: string, settings?: object): Promise<string> {
  const { json } = await rpc(service, 'sharing/create_shared_link_with_settings', { path, settings });
  return (json as { url: string }).url;
}

const statusOf = async (url: string) => (await send(url, { method: 'GET' })).status;

test('an expired link stays in the database for 30 days and is removed afterwards', async () => {
  await put(service, '/a', 'a');
  await put(service, '/b', 'b');
  const lasting = await linkTo('/b');
  await linkTo('/a', { expires: new Date(clock.now() + HOUR_MS).toISOString().replace(/\.\d+/, '') });
  await clock.advance(30 * DAY_MS);
  await afterSomeRounds(() => expect(clock.sleeping).toBe(0));
  expect(countOf('links')).toBe(2);
  await clock.advance(DAY_MS);
  await afterSomeRounds(() => expect(countOf('links')).toBe(1));
  expect(await statusOf(lasting)).toBe(200);
});

test('a link is removed with its permanently deleted file, and stays while its file can be restored', async () => {
  await put(service, '/gone', 'a');
  await put(service, '/deleted', 'b');
  await linkTo('/gone');
  const link = await linkTo('/deleted');
  const { json } = await rpc(service, 'files/get_metadata', { path: '/deleted' });
  await rpc(service, 'files/delete_v2', { path: '/deleted' });
  await rpc(service, 'files/permanently_delete', { path: '/gone' });
  await afterSomeRounds(() => expect(countOf('links')).toBe(1));
  const { rev } = json as { rev: string };
  expect((await rpc(service, 'files/restore', { path: '/deleted', rev })).status).toBe(200);
  expect(await statusOf(link)).toBe(200);
});

test('housekeeping removes access tokens that expired 30 days ago, and keeps live ones', async () => {
  const fresh = () => refreshedToken(service);
  await fresh();
  const before = countOf('access_tokens');
  await clock.advance(30 * DAY_MS);
  await fresh();
  await afterSomeRounds(() => expect(countOf('access_tokens')).toBe(before));
  expect((await rpc(service, 'users/get_current_account', null)).status).toBe(200);
});

test('housekeeping removes an expired upload session and an expired deletion that no call asks for', async () => {
  await put(service, '/file', 'text');
  await rpc(service, 'files/delete_v2', { path: '/file' });
  // Large enough to be a block file.
  await upload(service, 'files/upload_session/start', {}, { body: pseudoRandomBytes(70_000, 1) });
  const blocks = () => readdir(join(service.dataDirectory, 'blocks'));
  expect(await blocks()).toHaveLength(1);
  const gone = () => rpc(service, 'files/get_metadata', { path: '/file', include_deleted: true });
  await clock.advance(180 * DAY_MS);
  expect((await gone()).json).toMatchObject({ '.tag': 'deleted' });
  await afterSomeRounds(async () => expect(await blocks()).toEqual([]));
  await afterSomeRounds(async () =>
    expect(refusalIn(await gone())).toEqual(
      refusal(409, 'path/not_found', { '.tag': 'path', path: { '.tag': 'not_found' } }),
    ),
  );
});

test('a part of housekeeping that fails does not keep the others from removing what is not needed', async () => {
  const database = new Sqlite(join(service.dataDirectory, 'accounts.sqlite'));
  database.exec(
    "CREATE TRIGGER refusal BEFORE DELETE ON access_tokens BEGIN SELECT RAISE(FAIL, 'full'); END",
  );
  database.close();
  await refreshedToken(service);
  const before = countOf('access_tokens');
  // The token is old enough to go, and that fails, before the session is.
  await clock.advance(40 * DAY_MS);
  await upload(service, 'files/upload_session/start', {}, { body: pseudoRandomBytes(70_000, 1) });
  await clock.advance(8 * DAY_MS);
  await afterSomeRounds(async () => expect(await readdir(join(service.dataDirectory, 'blocks'))).toEqual([]));
  expect(countOf('access_tokens')).toBe(before);
});

test('a service that closed with history to remove removes it after the next start', async () => {
  for (let file = 0; file < 50; file++) await put(service, `/${file}`, `${file}`);
  for (let file = 0; file < 50; file++) await rpc(service, 'files/delete_v2', { path: `/${file}` });
  await clock.advance(181 * DAY_MS);
  await service.service.close();
  const again = await startTestService({ clock, dataDirectory: service.dataDirectory });
  try {
    await eventually(async () => {
      const { json } = await rpc(again, 'files/list_folder', { path: '', include_deleted: true });
      expect((json as { entries: unknown[] }).entries).toEqual([]);
    });
  } finally {
    await again.close();
  }
});

test('a service closes within a long round of housekeeping, and its next start is a clean one that continues it', async () => {
  const steps = { removedRowsMax: 1 };
  const storage = await opened(steps);
  const { dataDirectory } = storage;
  const paths = Array.from({ length: 5_000 }, (_, index) => `/folder/${index}`);
  await storage.createFolders(HOME, paths, false);
  await storage.remove(HOME, '/folder');
  await storage.close();
  const read = (sql: string) => {
    const database = new Sqlite(join(dataDirectory, 'storage.sqlite'), { readonly: true });
    try {
      return Number(database.prepare(sql).pluck().get());
    } finally {
      database.close();
    }
  };
  const removals = () => read('SELECT count(*) FROM removal');

  const running = await startTestService({ clock, dataDirectory, steps });
  await running.close();
  expect(removals()).toBe(1);
  expect(read(`SELECT value FROM setting WHERE name = 'closed'`)).toBe(1);
  const again = await opened({ dataDirectory });
  await again.tidy();
  await again.close();
  expect(removals()).toBe(0);
});
