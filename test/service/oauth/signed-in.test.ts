import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hashOfSecret } from '../../../src/service/accounts/secrets.ts';
import { SIGNED_IN_MAX } from '../../../src/service/oauth/signed-in.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { addApp, addPerson, besideService, FormBrowser } from '../../support/consent.ts';
import { freePort } from '../../support/free-port.ts';
import { temporaryDirectory } from '../../support/program.ts';
import { startTestService, type TestService } from '../../support/service.ts';

const EMAIL = 'ann@example.org';
const PASSWORD = 'correct horse';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let port: number;
let service: TestService;

const start = () => startTestService({ dataDirectory: folder.path, listen: { host: '127.0.0.1', port } });

beforeEach(async () => {
  folder = await temporaryDirectory();
  port = await freePort();
  service = await start();
});
afterEach(async () => {
  await service.close();
  await folder.remove();
});

async function signedInBrowser(): Promise<{ browser: FormBrowser; open: () => Promise<string> }> {
  const { app } = await addApp(service);
  const browser = new FormBrowser(service);
  const open = async () => (await browser.open({ client_id: app.key, response_type: 'code' })).text;
  await open();
  await browser.signIn(EMAIL, PASSWORD);
  return { browser, open };
}

test('a sign-in and its open consent form outlive a restart of the service', async () => {
  await addPerson(service, EMAIL, PASSWORD);
  const { browser, open } = await signedInBrowser();
  await service.close();
  service = await start();
  const { status, text } = await browser.press('allow');
  expect([status, text]).toEqual([200, expect.stringMatching(/<output[^>]*>[\w-]{43}</)]);
  expect(await open()).toContain('value="allow"');
});

test('a sign-in ends with its account, also when another process removes it', async () => {
  const id = await addPerson(service, EMAIL, PASSWORD);
  const { open } = await signedInBrowser();
  expect(await open()).toContain('value="allow"');
  await besideService(service, ({ accounts }) => accounts.remove(id));
  expect(await open()).toContain('type="password"');
});

test('sign-ins that have ended are forgotten, and no others', async () => {
  const accountId = await addPerson(service, EMAIL, PASSWORD);
  const signedIn = (expiresMs: number) => ({
    accountId,
    passwordHash: Buffer.of(),
    signedInFor: '',
    expiresMs,
  });
  await besideService(service, async (directory) => {
    await directory.signedIn.add('ended', signedIn(1000));
    await directory.signedIn.add('running', signedIn(1001));
    expect(await directory.signedIn.forgetOld(1000, 10)).toBe(1);
    expect(await directory.signedIn.find(0, 'ended')).toBeUndefined();
    expect(await directory.signedIn.find(1000, 'running')).toEqual(signedIn(1001));
  });
});

test('beyond 10,000 sign-ins the one that ends first is dropped', async () => {
  const accountId = await addPerson(service, EMAIL, PASSWORD);
  const database = new Sqlite(join(folder.path, 'accounts.sqlite'));
  database
    .prepare<[number, string]>(
      `WITH RECURSIVE many (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM many WHERE number < ?)
       INSERT INTO signed_in SELECT randomblob(32), ?, x'', '', number FROM many`,
    )
    .run(SIGNED_IN_MAX, accountId);
  const signedIn = { accountId, passwordHash: Buffer.of(), signedInFor: '', expiresMs: SIGNED_IN_MAX + 1 };
  await besideService(service, (directory) => directory.signedIn.add('new', signedIn));
  const ends = database.prepare<[], number>('SELECT expires_ms FROM signed_in ORDER BY expires_ms').pluck();
  expect(ends.all()).toEqual(Array.from({ length: SIGNED_IN_MAX }, (_, index) => index + 2));
  const stored = database.prepare<[Uint8Array], number>('SELECT count(*) FROM signed_in WHERE id_hash = ?');
  expect(stored.pluck().get(hashOfSecret('new'))).toBe(1);
  database.close();
});
