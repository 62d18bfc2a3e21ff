import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { checkService } from '../../../src/service/admin/check.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { runAdmin } from '../../support/admin.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { addApp, addPerson, besideService, FormBrowser, tokenByConsent } from '../../support/consent.ts';
import { eventually } from '../../support/eventually.ts';
import { finished } from '../../support/jobs.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc, send } from '../../support/service-client.ts';

const EMAIL = 'leaving@example.org';
const PASSWORD = 'correct horse';
const CALLBACK = 'http://localhost:53682/';
const HOUR_MS = 3_600_000;
/** Real time that a round of housekeeping gets, in ms. When an hour passes, commits that are waiting are refused. */
const ROUND_MS = 500;

let clock: ManualClock;
let service: TestService;
let app: { readonly key: string; readonly secret: string; readonly redirectUri: string };
/** The service with a token of the account that is removed. */
let theirs: TestService;

beforeEach(async () => {
  clock = new ManualClock();
  service = await startTestService({ clock });
  await addPerson(service, EMAIL, PASSWORD);
  const added = await addApp(service, { redirectUris: [CALLBACK] });
  app = { key: added.app.key, secret: added.secret, redirectUri: CALLBACK };
  theirs = { ...service, token: await tokenByConsent(service, app, EMAIL, PASSWORD) };
});
afterEach(() => service.close());

/** `davgate service account remove`. */
async function remove(...words: string[]): Promise<void> {
  const { error } = await runAdmin(['account', 'remove', EMAIL, ...words], { data: service.dataDirectory });
  if (error !== undefined) throw error;
}

/** Content larger than an inline block, and different from all others. */
const LARGE = pseudoRandomBytes(5_000_000, 7);

const blockFiles = () => readdir(join(service.dataDirectory, 'blocks'));

const homesLeft = () =>
  besideService(service, async ({ accounts }) => (await accounts.abandonedHomes()).length);

test('account remove revokes the account’s token, links and sign-in at once, deletes its files, and leaves those of others', async () => {
  await put(service, '/ours', pseudoRandomBytes(5_000_000, 8));
  const ours = await blockFiles();
  await put(theirs, '/Folder/large', LARGE);
  await put(theirs, '/Folder/deleted', 'x'.repeat(100_000));
  await rpc(theirs, 'files/delete_v2', { path: '/Folder/deleted' });
  await put(theirs, '/deleted', 'y');
  await rpc(theirs, 'files/delete_v2', { path: '/deleted' });
  const path = '/Folder/large';
  const { url } = (await rpc(theirs, 'sharing/create_shared_link_with_settings', { path })).json as {
    url: string;
  };
  const { link } = (await rpc(theirs, 'files/get_temporary_link', { path })).json as { link: string };
  const browser = new FormBrowser(service);
  await browser.open({ client_id: app.key, response_type: 'code' });
  await browser.signIn(EMAIL, PASSWORD);

  await remove('--delete-files');
  expect((await rpc(theirs, 'users/get_current_account', null)).status).toBe(401);
  for (const address of [url, link]) expect((await send(address, {})).status).toBe(404);
  expect((await browser.press('allow')).status).toBe(403);
  expect((await browser.signIn(EMAIL, PASSWORD)).text).toContain('There is no account with this address');

  await eventually(async () => {
    await clock.advance(HOUR_MS);
    expect([await homesLeft(), await blockFiles()]).toEqual([0, ours]);
  });
  expect((await rpc(service, 'files/get_metadata', { path: '/ours' })).status).toBe(200);
});

test('account remove continues after a restart, and a new account of the same address has an empty home', async () => {
  await put(theirs, '/large', LARGE);
  await remove('--delete-files');
  await service.service.close();
  expect(await homesLeft()).toBe(1);
  const again = await startTestService({ clock, dataDirectory: service.dataDirectory });
  try {
    await eventually(async () => expect(await homesLeft()).toBe(0));
    await addPerson(again, EMAIL, PASSWORD);
    const token = await tokenByConsent(again, app, EMAIL, PASSWORD);
    const answered = await rpc(again, 'files/list_folder', { path: '' }, { token });
    expect(answered.json).toMatchObject({ entries: [] });
  } finally {
    await again.close();
  }
  const damages: string[] = [];
  for await (const { text } of checkService(service, () => undefined)) damages.push(text);
  expect(damages).toEqual([]);
});

test('account remove deletes all files of a home with more items than are cleared away at once', async () => {
  await service.service.close();
  const { dataDirectory } = service;
  const slow = await startTestService({ clock, dataDirectory, steps: { removedRowsMax: 1 } });
  const theirsThere = { ...slow, token: theirs.token };
  const makeFolders = async (count: number, start: string) => {
    const paths = Array.from({ length: count }, (_, index) => start + index);
    await finished(theirsThere, 'create_folder_batch', { paths, force_async: true });
  };
  // The rows of the large folder are cleared away first and one by one, so that those of the others stay meanwhile.
  await makeFolders(250, '/a/');
  await makeFolders(120, '/b');
  await remove('--delete-files');
  await eventually(async () => {
    await clock.advance(HOUR_MS);
    expect(await homesLeft()).toBe(0);
  }, ROUND_MS);
  await slow.close();
  const database = new Sqlite(join(dataDirectory, 'storage.sqlite'), { readonly: true });
  onTestFinished(() => void database.close());
  const left = database.prepare(
    `SELECT path FROM entry WHERE parent = '/'
     AND NOT EXISTS (SELECT 1 FROM removal WHERE removal.ns = entry.ns AND key = parent || name_key)`,
  );
  expect(left.pluck().all()).toEqual([]);
});

test('account remove without --delete-files is refused and removes nothing', async () => {
  await expect(remove()).rejects.toThrow('confirm it with --delete-files');
  expect((await rpc(theirs, 'users/get_current_account', null)).status).toBe(200);
});
