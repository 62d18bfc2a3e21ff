import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { externalLogin } from '../../../src/app/external-login.ts';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { askAuthUrl, LoginUnavailable } from '../../../src/http/auth-url.ts';
import { ANN, listening } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { settingsOfArguments } from '../../support/settings.ts';

/** The endpoint: its logins, what it was asked, and its answer for the right ones. */
let asked: IncomingMessage[];
let passwords: Map<string, string>;
let answer: (response: ServerResponse) => void;
let url: string;
const json = (value: unknown) => (response: ServerResponse) =>
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify(value));
const basic = (login: string) => `Basic ${Buffer.from(login).toString('base64')}`;

const server = createServer((request, response) => {
  asked.push(request);
  const isRight = [...passwords].some((login) => request.headers.authorization === basic(login.join(':')));
  if (isRight) answer(response);
  else response.writeHead(401).end();
});

beforeEach(async () => {
  asked = [];
  passwords = new Map([['eve', 'pä:ss']]);
  answer = (response) => response.end('welcome');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/check?from=davgate`; // a port is an AddressInfo
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const { drives } = resolveConfig(settingsOfArguments(['--data-dir', '/nowhere']), undefined, {}, '/nowhere');

const READ_ONLY = [{ drive: 'default', isReadOnly: true }];

/** Starts a gateway with the user ann of the table, two without a password there, and the endpoint for the others. */
async function gateway() {
  const clock = new ManualClock();
  const {
    url: address,
    lines,
    listener,
  } = await listening({
    users: [ANN, ...['guest', 'René'].map((name) => ({ name, grants: READ_ONLY }))],
    checkLogin: externalLogin(url, drives),
    clock,
    handle: (_request, _response, { user }, exchange) =>
      exchange.answer({ status: 200, headers: {}, body: JSON.stringify(user) }),
  });
  const ask = (login: string) => fetch(address, { headers: { authorization: basic(login) } });
  const statusOf = async (login: string) => {
    const { status, body } = await ask(login);
    await body?.cancel();
    return status;
  };
  return { clock, lines, listener, ask, statusOf, address };
}

describe('logins at --auth-url', () => {
  test('an unknown user is accepted or refused by the endpoint, which gets the login as Basic credentials', async () => {
    const { ask, statusOf } = await gateway();
    const accepted = await ask('eve:pä:ss');
    expect(await accepted.json()).toEqual({ name: 'eve', grants: [{ drive: 'default' }] });
    expect(await statusOf('eve:wrong')).toBe(401);
    expect(asked.map(({ method, url: path }) => [method, path])).toEqual([
      ['GET', '/check?from=davgate'],
      ['GET', '/check?from=davgate'],
    ]);
  });

  test('a user with a password in the configuration is never asked about', async () => {
    const { statusOf } = await gateway();
    expect([await statusOf('ann:secret'), await statusOf('ann:wrong')]).toEqual([200, 401]);
    expect(asked).toEqual([]);
  });

  test('a user of the configuration without a password keeps its drives', async () => {
    passwords.set('guest', 'g');
    const { ask } = await gateway();
    const user = await (await ask('guest:g')).json();
    expect(user).toEqual({ name: 'guest', grants: READ_ONLY });
  });

  test('a name with a domain before that of a user of the configuration is asked about as that user', async () => {
    passwords = new Map([
      ['guest', 'g'],
      ['EVIL\\guest', 'own'],
    ]);
    const { ask, statusOf } = await gateway();
    expect(await statusOf('EVIL\\guest:own')).toBe(401);
    expect(await (await ask('HOME\\guest:g')).json()).toMatchObject({ name: 'guest' });
  });

  test('a name with a domain that davgate does not know is another user than the one without', async () => {
    passwords.set('EVIL\\eve', 'own');
    const { ask } = await gateway();
    expect(await (await ask('EVIL\\eve:own')).json()).toMatchObject({ name: 'EVIL\\eve' });
  });

  test('the answer may name the user and drives with a root folder and read-only', async () => {
    answer = json({ name: 'Eve', drive: 'default', root: '/People/Eve', 'read-only': true });
    const { ask } = await gateway();
    const user = await (await ask('eve:pä:ss')).json();
    expect(user).toEqual({
      name: 'Eve',
      grants: [{ drive: 'default', root: '/People/Eve', isReadOnly: true }],
    });
  });

  test('a decomposed name in the answer is that of the configuration’s user, whose drives it gets', async () => {
    answer = json({ name: 'Rene\u0301' });
    const { ask } = await gateway();
    expect(await (await ask('eve:pä:ss')).json()).toEqual({ name: 'René', grants: READ_ONLY });
  });

  test('an accepted login is remembered for a minute, also while it is in use', async () => {
    const { clock, statusOf } = await gateway();
    for (const seconds of [0, 30, 29]) {
      await clock.advance(seconds * 1000);
      expect(await statusOf('eve:pä:ss')).toBe(200);
    }
    expect(asked).toHaveLength(1);
    passwords.clear();
    await clock.advance(1_000);
    expect(await statusOf('eve:pä:ss')).toBe(401);
  });

  test('a browser signed in by the endpoint is signed out after an hour, and by a reload', async () => {
    const { clock, address, listener } = await gateway();
    const signIn = async () => {
      const body = new URLSearchParams({ name: 'eve', password: 'pä:ss' });
      const { headers } = await fetch(`${address}.davgate/sign-in`, {
        method: 'POST',
        body,
        redirect: 'manual',
      });
      return (headers.get('set-cookie') ?? '').replace(/;.*/, '');
    };
    const statusWith = async (cookie: string) => (await fetch(address, { headers: { cookie } })).status;
    const first = await signIn();
    await clock.advance(59 * 60_000);
    expect(await statusWith(first)).toBe(200);
    await clock.advance(60_000);
    expect(await statusWith(first)).toBe(401);
    const second = await signIn();
    listener.reload({ users: [ANN] });
    expect(await statusWith(second)).toBe(401);
  });
});

describe('an endpoint in trouble', () => {
  test.each([
    ['a status 500', (response) => response.writeHead(500).end(), 'answered 500'],
    ['a redirect', (response) => response.writeHead(302, { location: url }).end(), 'answered 302'],
    [
      'broken JSON',
      (response) => response.setHeader('Content-Type', 'application/json').end('{"name":'),
      'no use',
    ],
    ['a list', json(['eve']), 'no use'],
    ['an unknown key', json({ drive: 'default', readonly: true }), 'unknown key'],
    ['a name with a colon', json({ name: 'a:b' }), 'without a colon'],
    ['an unknown drive', json({ drive: 'elsewhere' }), 'named the drive "elsewhere"'],
    ['a huge answer', json({ name: 'x'.repeat(100_000) }), 'more than 64 KiB'],
    ['a lost connection', (response) => response.destroy(), 'cannot be reached'],
  ] satisfies readonly (readonly [string, typeof answer, string])[])(
    '%s makes the login answer 503 with Retry-After, and the log says why without the password',
    async (_, trouble, reason) => {
      answer = trouble;
      const { ask, lines } = await gateway();
      // More often than wrong passwords are allowed: these are none.
      for (let count = 0; count < 5; count += 1) {
        const { status, headers, body } = await ask('eve:pä:ss');
        await body?.cancel();
        expect([status, headers.get('retry-after')]).toEqual([503, '5']);
      }
      expect(asked).toHaveLength(5);
      const problem = lines.find(({ event }) => event.includes('--auth-url has a problem'));
      expect(problem?.fields['reason']).toContain(reason);
      expect(JSON.stringify(lines)).not.toMatch(/pä:ss|cMOkOnNz/);
      answer = (response) => response.end();
      expect((await ask('eve:pä:ss')).status).toBe(200);
    },
  );

  test('an endpoint that does not listen makes the login answer 503, and ann logs in all the same', async () => {
    const { statusOf } = await gateway();
    server.close();
    await once(server, 'close');
    expect([await statusOf('eve:pä:ss'), await statusOf('ann:secret')]).toEqual([503, 200]);
  });

  test('an endpoint that does not answer in time is given up', async () => {
    answer = () => {};
    const asking = askAuthUrl(url, { name: 'eve', password: 'pä:ss' }, 50);
    await expect(asking).rejects.toThrow(new LoginUnavailable('did not answer within 50 ms'));
  });

  test('an endpoint that stops in the middle of its answer is given up', async () => {
    answer = (response) => response.setHeader('Content-Type', 'application/json').write('{"name"');
    const asking = askAuthUrl(url, { name: 'eve', password: 'pä:ss' }, 200);
    await expect(asking).rejects.toThrow(new LoginUnavailable('did not answer within 200 ms'));
  });

  test('the sign-in page says that the password cannot be checked', async () => {
    answer = (response) => response.writeHead(500).end();
    const { address } = await gateway();
    const body = new URLSearchParams({ name: 'eve', password: 'pä:ss' });
    const page = await fetch(`${address}.davgate/sign-in`, { method: 'POST', body });
    expect([page.status, await page.text()]).toEqual([503, expect.stringContaining('cannot be checked')]);
  });
});

test.each([
  ['http://login.example.com/check', /passwords would cross the network unencrypted/],
  ['https://ann:secret@login.example.com/', /^--auth-url: contains a login/],
  ['login.example.com', /is not an address like https:/],
])('--auth-url %s is refused', (text, message) => {
  const resolve = () => resolveConfig(settingsOfArguments(['--auth-url', text]), undefined, {}, '/nowhere');
  expect(resolve).toThrow(message);
});

test.each([
  'http://127.0.0.1:9/x/',
  'http://[::1]:9/x?y',
  'http://localhost/',
  'https://login.example.com/x',
])('--auth-url %s is taken as it is, and davgate makes up no user', (text) => {
  const { authUrl, users } = resolveConfig(
    settingsOfArguments(['--auth-url', text]),
    undefined,
    {},
    '/nowhere',
  );
  expect([authUrl, users]).toEqual([text, []]);
});
