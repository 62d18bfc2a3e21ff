import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { AppPasswords } from '../../../src/app/app-passwords.ts';
import { createBrowserHandler } from '../../../src/browser/handler.ts';
import type { Drive } from '../../../src/browser/route.ts';
import { type GatewayServer, startGatewayServer } from '../../../src/http/gateway-server.ts';
import { csrfTokenOf } from '../../../src/http/sessions.ts';
import type { AppPasswordStore } from '../../../src/state/app-passwords.ts';
import { openSqliteState } from '../../../src/state/sqlite/state.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ANN } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const JOE = { ...ANN, name: 'joe' };

let store: AppPasswordStore;
let clock: ManualClock;
let servers: GatewayServer[];

beforeEach(() => {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-app-passwords-'));
  const state = openSqliteState({ directory });
  store = state.appPasswords;
  clock = new ManualClock();
  servers = [];
  onTestFinished(async () => {
    for (const server of servers) await server.close(AbortSignal.abort());
    await state.close();
    rmSync(directory, { recursive: true });
  });
});

/** Starts a gateway with the users ann and joe on the store that all gateways of the test share. */
async function gateway(of: AppPasswordStore = store) {
  const appPasswords = new AppPasswords(of, clock);
  const handleApi = createBrowserHandler({
    clock,
    log: silentLog,
    appPasswordsOf: (user) => (user === 'joe' ? undefined : appPasswords.of(user)),
  });
  const server = await startGatewayServer<Drive>({
    host: '127.0.0.1',
    port: 0,
    users: [ANN, JOE],
    checkAppPassword: (user, password) => appPasswords.check(user, password),
    driveOf: () => ({}) as Drive, // the functions about app passwords use no drive
    ownRoute: handleApi,
    handle: (exchange, { user }) => exchange.answer({ status: 200, headers: {}, body: user?.name }),
    log: silentLog,
    clock,
  });
  servers.push(server);
  return server;
}

const basic = (login: string) => `Basic ${Buffer.from(login).toString('base64')}`;

async function statusOf({ url }: GatewayServer, login: string): Promise<number> {
  const answer = await fetch(url, { headers: { authorization: basic(login) } });
  await answer.text();
  return answer.status;
}

/** Signs in on the page. Without a session `cookie` is empty. */
async function signIn({ url }: GatewayServer, name: string, password: string) {
  const body = new URLSearchParams({ name, password });
  const answer = await fetch(`${url}.davgate/sign-in`, { method: 'POST', body, redirect: 'manual' });
  const text = await answer.text();
  return { status: answer.status, text, cookie: (answer.headers.get('set-cookie') ?? '').replace(/;.*/, '') };
}

/** The answers of the functions. */
interface Told {
  readonly password?: string;
  readonly appPasswords?: readonly { readonly id: string }[];
}

/** Returns a function that calls the functions about app passwords with these headers. */
function caller({ url }: GatewayServer, headers: Readonly<Record<string, string>>) {
  return async (name: string, values?: Readonly<Record<string, string>>) => {
    const init = values
      ? {
          method: 'POST',
          body: JSON.stringify(values),
          headers: { ...headers, 'content-type': 'application/json' },
        }
      : { headers };
    const answer = await fetch(`${url}.davgate/api/${name}`, init);
    const text = await answer.text();
    const told: Told = answer.ok ? JSON.parse(text) : {};
    return { status: answer.status, told };
  };
}

/** Returns a caller in the browser session of a user. */
async function session(server: GatewayServer, name: string) {
  const { cookie } = await signIn(server, name, 'secret');
  const id = cookie.replace(/.*=/, '');
  return caller(server, { cookie, 'x-csrf-token': csrfTokenOf(id) });
}

test('an app password that a signed-in user makes logs that user in, is listed without the password, and ends at once', async () => {
  const server = await gateway();
  const call = await session(server, 'ann');
  const made = await call('make-app-password', { name: ' phone ' });
  expect(made).toEqual({
    status: 200,
    told: { password: expect.stringMatching(/^[a-z2-7]{4}(-[a-z2-7]{4}){7}$/) },
  });
  const { password } = made.told;
  const entry = { id: expect.any(String), name: 'phone', createdMs: clock.now() };
  expect((await call('app-passwords')).told).toEqual({ appPasswords: [entry] });
  expect(await statusOf(server, `ann:${password}`)).toBe(200);
  expect(await statusOf(server, `joe:${password}`)).toBe(401);
  const { appPasswords = [] } = (await call('app-passwords')).told;
  expect(appPasswords).toEqual([{ ...entry, usedMs: clock.now() }]);
  const id = appPasswords[0]?.id ?? '';
  expect((await call('end-app-password', { id })).status).toBe(200);
  expect(await statusOf(server, `ann:${password}`)).toBe(401);
  expect((await call('end-app-password', { id })).status).toBe(404);
  expect(await statusOf(server, 'ann:secret')).toBe(200);
});

test('an app password neither signs in on the page nor makes, lists or ends app passwords', async () => {
  const server = await gateway();
  const own = await session(server, 'ann');
  const { password } = (await own('make-app-password', { name: 'phone' })).told;
  const page = await signIn(server, 'ann', password ?? '');
  expect([page.status, page.cookie]).toEqual([401, '']);
  expect(page.text).toContain('App passwords are for other programs.');
  const call = caller(server, { authorization: basic(`ann:${password}`) });
  expect((await call('make-app-password', { name: 'more' })).status).toBe(403);
  expect((await call('app-passwords')).status).toBe(403);
  expect((await call('end-app-password', { id: 'x' })).status).toBe(403);
  expect(await store.all('ann')).toHaveLength(1);
});

test('a call without the token of the session makes no app password', async () => {
  const server = await gateway();
  const { cookie } = await signIn(server, 'ann', 'secret');
  expect((await caller(server, { cookie })('make-app-password', { name: 'x' })).status).toBe(401);
  expect(await store.all('ann')).toEqual([]);
});

test('a user who is not of the configuration has no app passwords', async () => {
  const call = await session(await gateway(), 'joe');
  expect((await call('make-app-password', { name: 'x' })).status).toBe(403);
});

test.each(['', '   ', 'x'.repeat(101), 'a\nb'])('an app password cannot have the name %j', async (name) => {
  const call = await session(await gateway(), 'ann');
  expect((await call('make-app-password', { name })).status).toBe(400);
});

test('a user has 50 app passwords at most', async () => {
  const call = await session(await gateway(), 'ann');
  for (let index = 0; index < 50; index += 1)
    await store.add('ann', { id: `id ${index}`, name: 'x', hash: `hash ${index}`, createdMs: 1 }, 50);
  expect((await call('make-app-password', { name: 'x' })).status).toBe(409);
  await call('end-app-password', { id: 'id 7' });
  expect((await call('make-app-password', { name: 'x' })).status).toBe(200);
});

test('an app password of a removed user does not work', async () => {
  const server = await gateway();
  const { password = '' } = (await (await session(server, 'ann'))('make-app-password', { name: 'x' })).told;
  expect(await statusOf(server, `ann:${password}`)).toBe(200);
  server.reload({ users: [JOE] });
  expect(await statusOf(server, `ann:${password}`)).toBe(401);
});

test('an app password that one gateway ends works at another one for 5 s at most, also while it is in use', async () => {
  const [here, there] = [await gateway(), await gateway()];
  const call = await session(here, 'ann');
  const { password } = (await call('make-app-password', { name: 'phone' })).told;
  expect(await statusOf(there, `ann:${password}`)).toBe(200);
  await call('end-app-password', { id: (await store.all('ann'))[0]?.id ?? '' });
  await clock.advance(4_000);
  expect([await statusOf(here, `ann:${password}`), await statusOf(there, `ann:${password}`)]).toEqual([
    401, 200,
  ]);
  await clock.advance(1_000);
  expect(await statusOf(there, `ann:${password}`)).toBe(401);
});

test('while app passwords cannot be read a login with one answers 503, and the right password logs in', async () => {
  const away: AppPasswordStore = { ...store, all: () => Promise.reject(new Error('Redis is away')) };
  const [server, other] = [await gateway(away), await gateway()];
  const { password = '' } = (await (await session(other, 'ann'))('make-app-password', { name: 'x' })).told;
  expect(await statusOf(server, `ann:${password}`)).toBe(503);
  expect(await statusOf(server, 'ann:secret')).toBe(200);
});
