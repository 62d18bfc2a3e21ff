import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LogFields } from '../../../src/util/log.ts';
import { addApp, addPerson, FormBrowser } from '../../support/consent.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc, send, sharedLink } from '../../support/service-client.ts';

const PASSWORD = 'correct horse';
const WRONG = 'battery staple';

let service: TestService;
let lines: (LogFields & { readonly level: string })[];

beforeAll(async () => {
  const note =
    (level: string) =>
    (event: string, fields: LogFields = {}) =>
      void lines.push({ level, event, ...fields });
  lines = [];
  service = await startTestService({ log: { info: note('info'), warn: note('warn'), error: note('error') } });
});
afterAll(() => service.close());
beforeEach(() => {
  lines = [];
});

function expectNoSecret(...secrets: readonly string[]): void {
  const log = JSON.stringify(lines);
  for (const secret of [PASSWORD, WRONG, ...secrets]) expect(log).not.toContain(secret);
}

test('a failed and a successful sign-in are logged with address and account, and without the password', async () => {
  const redirectUri = 'http://127.0.0.1:9/callback';
  const { app } = await addApp(service, { redirectUris: [redirectUri] });
  const email = 'ann@example.org';
  const account = await addPerson(service, email, PASSWORD);
  const browser = new FormBrowser(service);
  await browser.open({ client_id: app.key, response_type: 'code', redirect_uri: redirectUri });
  await browser.signIn(email, WRONG);
  await browser.signIn(`nobody${'x'.repeat(200)}@example.org`, WRONG);
  await browser.signIn(email.toUpperCase(), PASSWORD);
  const address = '127.0.0.1';
  expect(lines).toEqual([
    { level: 'warn', event: 'sign-in failed', address, email, account },
    { level: 'warn', event: 'sign-in failed', address, email: `nobody${'x'.repeat(94)}` },
    { level: 'info', event: 'signed in', address, email, account },
  ]);
  expectNoSecret();
});

test('a wrong and a right password of a shared link are logged with address and account, and without a secret', async () => {
  await put(service, '/hidden', 'text');
  const settings = { requested_visibility: 'password', link_password: PASSWORD };
  const url = await sharedLink(service, '/hidden', settings);
  const { json } = await rpc(service, 'users/get_current_account', null);
  const { account_id: account } = json as { account_id: string };
  const tell = (password: string) => send(url, { method: 'POST', body: new URLSearchParams({ password }) });
  const call = (link_password: string) =>
    rpc(service, 'sharing/get_shared_link_metadata', { url, link_password });
  expect((await tell(WRONG)).status).toBe(403);
  await tell(PASSWORD);
  // A password that was right before is not logged again at each call.
  expect((await call(PASSWORD)).status).toBe(200);
  const address = '127.0.0.1';
  expect(lines).toEqual([
    { level: 'warn', event: 'wrong password for a shared link', address, account },
    { level: 'info', event: 'a shared link was opened with its password', address, account },
  ]);
  const { pathname, searchParams } = new URL(url);
  expectNoSecret(searchParams.get('rlkey') ?? '', pathname.split('/')[3] ?? '');
});
