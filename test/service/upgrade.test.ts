import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { DataDirectoryError } from '../../src/service/storage/errors.ts';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';
import { besideService, FormBrowser } from '../support/consent.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, refreshForm, rpc, send } from '../support/service-client.ts';

/** Schema 2 of the accounts database, with one app and without passwords and limits. */
const OLD_SCHEMA = `
  CREATE TABLE accounts (account_id TEXT PRIMARY KEY, namespace TEXT NOT NULL UNIQUE, email TEXT NOT NULL UNIQUE,
    given_name TEXT NOT NULL, surname TEXT NOT NULL, may_delete_permanently INTEGER NOT NULL) STRICT;
  CREATE TABLE apps (app_key TEXT PRIMARY KEY, secret_hash BLOB NOT NULL) STRICT;
  CREATE TABLE grants (grant_id INTEGER PRIMARY KEY, account_id TEXT NOT NULL REFERENCES accounts,
    app_key TEXT NOT NULL REFERENCES apps, scopes TEXT NOT NULL, refresh_hash BLOB UNIQUE) STRICT;
  CREATE TABLE access_tokens (token_hash BLOB PRIMARY KEY,
    grant_id INTEGER NOT NULL REFERENCES grants ON DELETE CASCADE, scopes TEXT NOT NULL, expires_ms INTEGER)
    STRICT, WITHOUT ROWID;
  CREATE INDEX access_tokens_of_grant ON access_tokens (grant_id);
  CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_ms);
  CREATE TABLE links (sequence INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL UNIQUE, rlkey TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts, item_id TEXT NOT NULL, item_kind TEXT NOT NULL,
    visibility TEXT NOT NULL, password_hash BLOB, expires_ms INTEGER, allow_download INTEGER NOT NULL) STRICT;
  CREATE UNIQUE INDEX links_of_item ON links (account_id, item_id);
  CREATE TABLE temporary_links (token_hash BLOB PRIMARY KEY, target TEXT NOT NULL, expires_ms INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
  CREATE INDEX temporary_links_by_expiry ON temporary_links (expires_ms);
  PRAGMA user_version = 2;`;

const COLUMNS = {
  accounts: 'account_id, namespace, email, given_name, surname, may_delete_permanently',
  apps: 'app_key, secret_hash',
  grants: 'grant_id, account_id, app_key, scopes, refresh_hash',
  access_tokens: 'token_hash, grant_id, scopes, expires_ms',
  links:
    'sequence, token, rlkey, account_id, item_id, item_kind, visibility, password_hash, expires_ms, allow_download',
};

/** Rewrites the data directory of a stopped service to the older version. */
async function makeOld({ dataDirectory }: TestService): Promise<void> {
  const file = join(dataDirectory, 'accounts.sqlite');
  const old = new Sqlite(`${file}.old`);
  old.exec(OLD_SCHEMA);
  old.prepare('ATTACH ? AS newer').run(file);
  for (const [table, columns] of Object.entries(COLUMNS))
    old.exec(`INSERT INTO main.${table} SELECT ${columns} FROM newer.${table}`);
  old.exec('DETACH newer');
  old.close();
  for (const suffix of ['', '-wal', '-shm']) await rm(file + suffix, { force: true });
  await writeFile(file, await readFile(`${file}.old`));
  const credentials = join(dataDirectory, 'credentials.json');
  const { email, password, ...kept } = JSON.parse(await readFile(credentials, 'utf8'));
  await writeFile(credentials, JSON.stringify(kept));
}

const started: TestService[] = [];
afterEach(async () => {
  for (const service of started.splice(0).reverse()) await service.close();
});

async function start(dataDirectory?: string): Promise<TestService> {
  const service = await startTestService(dataDirectory === undefined ? {} : { dataDirectory });
  started.push(service);
  return service;
}

test('a data directory of an older version keeps its files, tokens and links after an upgrade', async () => {
  const before = await start();
  await put(before, '/kept', 'kept');
  const argument = { path: '/kept' };
  const link = await rpc(before, 'sharing/create_shared_link_with_settings', argument);
  await before.service.close();
  await makeOld(before);
  const after = await start(before.dataDirectory);

  expect([after.token, after.refreshToken, after.appKey]).toEqual([
    before.token,
    before.refreshToken,
    before.appKey,
  ]);
  expect((await rpc(after, 'files/get_metadata', argument)).json).toMatchObject({ name: 'kept' });
  await put(after, '/new', 'new');
  const body = new URLSearchParams(refreshForm(after));
  expect((await send(`${after.url}/oauth2/token`, { method: 'POST', body })).status).toBe(200);
  const { pathname, search } = new URL((link.json as { url: string }).url);
  expect((await send(`${after.url}${pathname}${search}`, {})).status).toBe(200);
  expect(await besideService(after, ({ apps }) => apps.all())).toMatchObject([
    { name: 'davgate', status: 'production', redirectUris: [] },
  ]);
});

test('an older data directory’s account gets a password at the upgrade, which stays the same', async () => {
  const before = await start();
  await before.service.close();
  await makeOld(before);
  const after = await start(before.dataDirectory);
  const { email, password = '' } = await after.service.provision();
  const browser = new FormBrowser(after);
  await browser.open({ client_id: after.appKey, response_type: 'code' });
  expect((await browser.signIn(email, password)).text).toContain('davgate wants access to your account');
  expect((await after.service.provision()).password).toBe(password);
});

test('a database of a newer version is refused with its format number', async () => {
  const before = await start();
  await before.service.close();
  const file = join(before.dataDirectory, 'accounts.sqlite');
  const newer = new Sqlite(file);
  newer.pragma('user_version = 1000');
  newer.close();
  await expect(start(before.dataDirectory)).rejects.toThrow(DataDirectoryError);
  await expect(start(before.dataDirectory)).rejects.toThrow(/written by a newer davgate \(format 1000\)/);
});
