import { describe, expect, test } from 'vitest';
import type { Access } from '../../../src/http/admission.ts';
import { Networks } from '../../../src/util/networks.ts';
import { ANN, ANN_HEADER, type Listening, listening, request } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const NAVIGATION = 'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n';
const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const BASIC = '\r\nWWW-Authenticate: Basic realm="davgate", charset="UTF-8"\r\n';

type Values = Readonly<Record<string, string>>;

/** Returns the whole answer to one request. */
async function ask(to: Listening, method: string, target: string, lines = '', body = ''): Promise<string> {
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`;
  return to.connect(request(method, target, `${lines}${length}Connection: close\r\n`, body)).closed();
}

function signIn(to: Listening, values: Values, lines = ''): Promise<string> {
  return ask(to, 'POST', '/.davgate/sign-in', FORM + lines, String(new URLSearchParams(values)));
}

const RIGHT = { name: 'ann', password: 'secret', to: '/Photos/?plain' };

const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
const headerOf = (answer: string, name: string) => new RegExp(`\r\n${name}: (.*)\r\n`, 'i').exec(answer)?.[1];
const cookieOf = (answer: string) => /\r\nSet-Cookie: ([^;]*)/i.exec(answer)?.[1] ?? '';

/** A gateway that answers with the user and the token of a request. */
function gateway(options: Parameters<typeof listening>[0] = {}): Promise<Listening> {
  return listening({
    users: [ANN],
    handle: async (_request, response, { user, csrfToken = '' }: Access<undefined>) =>
      void response.end(`for ${user?.name} token=${csrfToken};`),
    ...options,
  });
}

/** Signs in and returns the header lines of the session: the cookie, and the token that its pages can read. */
async function session(to: Listening): Promise<{ readonly cookie: string; readonly token: string }> {
  const cookie = `Cookie: ${cookieOf(await signIn(to, RIGHT))}\r\n`;
  const token = /token=([^;]+);/.exec(await ask(to, 'GET', '/', cookie))?.[1] ?? '';
  return { cookie, token: `X-CSRF-Token: ${token}\r\n` };
}

describe('the sign-in page', () => {
  test.each([
    ['names what it accepts', NAVIGATION],
    ['names HTML alone', 'Accept: text/html\r\n'],
    [
      'also says where it opens the page',
      `${NAVIGATION}Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n`,
    ],
  ])('a browser that %s gets the page with 401 and without a Basic challenge', async (_, lines) => {
    const answer = await ask(await gateway(), 'GET', '/a%20b/?c', lines);
    expect(statusOf(answer)).toBe(401);
    expect(answer).not.toContain('Basic');
    expect(headerOf(answer, 'content-type')).toBe('text/html; charset=utf-8');
    expect(headerOf(answer, 'cache-control')).toBe('no-store');
    expect(headerOf(answer, 'content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-\S+'; .*form-action 'self'; frame-ancestors 'none'$/,
    );
    expect(answer).toContain('<form method="post" action="/.davgate/sign-in">');
    expect(answer).toContain('name="to" value="/a%20b/?c"');
  });

  test.each([
    ['de-AT,de;q=0.9,en;q=0.8', 'de', 'Anmelden'],
    ['fr,en;q=0.5,de;q=0.1', 'en', 'Sign in'],
    ['en;q=0.4,de;q=0.6', 'de', 'Anmelden'],
    ['fr', 'en', 'Sign in'],
    ['', 'en', 'Sign in'],
  ])('the page for Accept-Language %s is in %s', async (wanted, language, title) => {
    const answer = await ask(await gateway(), 'GET', '/', `${NAVIGATION}Accept-Language: ${wanted}\r\n`);
    expect(headerOf(answer, 'content-language')).toBe(language);
    expect(answer).toContain(`<html lang="${language}">`);
    expect(answer).toContain(`<h1>${title}</h1>`);
  });

  test.each([
    ['a program that accepts anything', 'GET', 'Accept: */*\r\n'],
    ['a program without Accept', 'GET', ''],
    ['Java’s HTTP client', 'GET', 'Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\r\n'],
    [
      'KDE’s file manager',
      'GET',
      'Accept: text/html, text/*;q=0.9, image/jpeg;q=0.9, image/*;q=0.9, */*;q=0.8\r\n',
    ],
    ['HEAD', 'HEAD', NAVIGATION],
    ['PROPFIND', 'PROPFIND', NAVIGATION],
    ['PUT', 'PUT', NAVIGATION],
    ['POST', 'POST', NAVIGATION],
    ['a script', 'GET', `${NAVIGATION}Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n`],
    ['an image', 'GET', 'Accept: image/*\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n'],
    ['a frame', 'GET', `${NAVIGATION}Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n`],
    ['a wrong Basic login', 'GET', `${NAVIGATION}Authorization: Basic YW5uOng=\r\n`],
  ])('%s gets 401 with the Basic challenge', async (_, method, lines) => {
    const answer = await ask(await gateway(), method, '/', lines);
    expect(statusOf(answer)).toBe(401);
    expect(answer).toContain(BASIC);
  });

  test('a gateway without users shows the drive and no sign-in page', async () => {
    const open = await gateway({ users: undefined });
    expect(await ask(open, 'GET', '/', NAVIGATION)).toContain('for undefined');
    expect(statusOf(await ask(open, 'GET', '/.davgate/sign-in', NAVIGATION))).toBe(404);
    expect(statusOf(await signIn(open, RIGHT))).toBe(404);
  });

  test('a browser that follows a link of another site gets a page that opens the address again with the cookie', async () => {
    const drive = await gateway();
    const foreign = 'Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n';
    const answer = await ask(drive, 'GET', '/a&b/', NAVIGATION + foreign);
    const next = '/.davgate/sign-in?to=%2Fa%26b%2F';
    expect(answer).toContain(`<meta http-equiv="refresh" content="0; url=${next}">`);
    const { cookie } = await session(drive);
    const led = await ask(drive, 'GET', next, NAVIGATION + cookie);
    expect([statusOf(led), headerOf(led, 'location')]).toEqual([303, '/a&b/']);
    expect(await ask(drive, 'GET', next, NAVIGATION)).toContain('name="to" value="/a&amp;b/"');
  });
});

describe('signing in', () => {
  test('the right password starts a session and leads to the page that was asked for', async () => {
    const drive = await gateway();
    const answer = await signIn(drive, RIGHT);
    expect([statusOf(answer), headerOf(answer, 'location')]).toEqual([303, '/Photos/?plain']);
    expect(headerOf(answer, 'set-cookie')).toMatch(
      new RegExp(`^davgate-session-${drive.port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict$`),
    );
    const cookie = `Cookie: other=1; ${cookieOf(answer)}\r\n`;
    expect(await ask(drive, 'GET', '/', NAVIGATION + cookie)).toContain('for ann');
    expect(drive.lines).toContainEqual({
      event: 'signed in',
      fields: { address: '127.0.0.1', user: 'ann' },
    });
    expect(JSON.stringify(drive.lines)).not.toContain(cookieOf(answer).split('=')[1]);
  });

  test('behind a trusted proxy with TLS the cookie is Secure and has the prefix that no other host can set', async () => {
    const forwarded = await gateway({ trustedProxies: new Networks(['127.0.0.1']) });
    for (const proto of ['X-Forwarded-Proto: https', 'Forwarded: for=192.0.2.1;proto=https;host=x'])
      expect(headerOf(await signIn(forwarded, RIGHT, `${proto}\r\n`), 'set-cookie')).toMatch(
        /^__Host-davgate-session-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
      );
    // Anybody else may write that header.
    const direct = await signIn(await gateway(), RIGHT, 'X-Forwarded-Proto: https\r\n');
    expect(headerOf(direct, 'set-cookie')).toMatch(/^davgate-session-/);
  });

  test.each([
    ['a wrong password', { ...RIGHT, password: 'Secret' }],
    ['an unknown name', { ...RIGHT, name: 'bob' }],
    ['no password', { name: 'ann' }],
  ])(
    '%s is told kindly, keeps the name and the address, and is logged like a Basic login',
    async (_, values) => {
      const drive = await gateway();
      const answer = await signIn(drive, values);
      expect(statusOf(answer)).toBe(401);
      expect(answer).not.toContain('Set-Cookie');
      expect(answer).not.toContain('Basic');
      expect(answer).toContain('<p class="problem" role="alert">That user name and password do not belong');
      expect(answer).toContain(`autocapitalize="none" spellcheck="false" value="${values.name}"`);
      if ('to' in values) expect(answer).toContain('value="/Photos/?plain"');
      expect(answer).not.toContain('Secret');
      const failure = { event: 'login failed', fields: { address: '127.0.0.1', user: values.name } };
      expect(drive.lines).toContainEqual(failure);
    },
  );

  test('after three wrong passwords the page says how long to wait, for Basic and the page together', async () => {
    const clock = new ManualClock();
    const drive = await gateway({ clock });
    for (const password of ['1', '2', '3']) await signIn(drive, { ...RIGHT, password });
    const wrong = Buffer.from('ann:4').toString('base64');
    expect(statusOf(await ask(drive, 'GET', '/', `Authorization: Basic ${wrong}\r\n`))).toBe(401);
    for (const [password, waitMs] of [
      ['5', 1_000],
      ['6', 2_000],
    ] as const) {
      await clock.advance(waitMs);
      await signIn(drive, { ...RIGHT, password });
    }
    const answer = await signIn(drive, RIGHT);
    expect([statusOf(answer), headerOf(answer, 'retry-after')]).toEqual([429, '4']);
    expect(answer).toContain('There were too many wrong passwords. Try again in 4 seconds.');
    await clock.advance(4_000);
    expect(statusOf(await signIn(drive, RIGHT))).toBe(303);
  });

  test.each([
    ['https://evil.example/', '/'],
    ['//evil.example/', '/'],
    ['/\\evil.example/', '/'],
    ['/\t/evil.example/', '/'],
    ['/x/..//evil.example/', '/'],
    ['javascript:alert(1)', '/'],
    ['', '/'],
    ['/.davgate/sign-in', '/'],
    ['/ä\r\nSet-Cookie: a=b', '/%C3%A4Set-Cookie:%20a=b'],
    ['/a%2f%2fb/?c#d', '/a%2f%2fb/?c'],
  ])('a form that wants to go on to %o leads to %s', async (to, location) => {
    const answer = await signIn(await gateway(), { ...RIGHT, to });
    expect([statusOf(answer), headerOf(answer, 'location')]).toEqual([303, location]);
  });

  test.each([
    ['another site', 'Sec-Fetch-Site: cross-site\r\n', 403],
    ['another host of the domain', 'Sec-Fetch-Site: same-site\r\nOrigin: http://y.x\r\n', 403],
    ['a site that an old browser names', 'Origin: https://evil.example\r\n', 403],
    ['a sandbox', 'Origin: null\r\n', 403],
    ['another port', 'Origin: http://x:8000\r\n', 403],
    ['this gateway', 'Sec-Fetch-Site: same-origin\r\nOrigin: https://behind.example\r\n', 303],
    ['this gateway in an old browser', 'Origin: https://x\r\n', 303],
  ])('a form of %s is answered %s%i', async (_, lines, status) => {
    expect(statusOf(await signIn(await gateway(), RIGHT, lines))).toBe(status);
  });

  test.each([
    ['too long', FORM, `name=${'a'.repeat(17 * 1024)}`],
    ['JSON', 'Content-Type: application/json\r\n', '{}'],
  ])('a body that is %s is refused with 400', async (_, lines, body) => {
    expect(statusOf(await ask(await gateway(), 'POST', '/.davgate/sign-in', lines, body))).toBe(400);
  });

  test('a second sign-in of a browser ends its first session', async () => {
    const drive = await gateway();
    const { cookie } = await session(drive);
    const second = `Cookie: ${cookieOf(await signIn(drive, RIGHT, cookie))}\r\n`;
    expect(second).not.toBe(cookie);
    expect(statusOf(await ask(drive, 'GET', '/', cookie))).toBe(401);
    expect(statusOf(await ask(drive, 'GET', '/', second))).toBe(200);
  });
});

describe('a session', () => {
  test.each(['PUT', 'DELETE', 'MKCOL', 'MOVE', 'COPY', 'PROPPATCH', 'LOCK', 'UNLOCK', 'POST'])(
    '%s by the cookie needs the token of the session',
    async (method) => {
      const drive = await gateway();
      const [mine, other] = [await session(drive), await session(drive)];
      for (const token of ['', 'X-CSRF-Token: \r\n', 'X-CSRF-Token: x\r\n', other.token]) {
        const answer = await ask(drive, method, '/a', mine.cookie + token);
        expect(statusOf(answer)).toBe(401);
        expect(answer).not.toContain('Basic');
      }
      expect(await ask(drive, method, '/a', mine.cookie + mine.token)).toContain('for ann');
    },
  );

  test.each(['GET', 'HEAD', 'OPTIONS', 'PROPFIND'])('%s by the cookie needs no token', async (method) => {
    const drive = await gateway();
    const { cookie } = await session(drive);
    expect(statusOf(await ask(drive, method, '/', cookie))).toBe(200);
  });

  test('the CSRF token may be in the query, for the form that downloads an archive', async () => {
    const drive = await gateway();
    const { cookie, token } = await session(drive);
    const target = `/?csrf=${token.slice('X-CSRF-Token: '.length).trim()}`;
    expect(await ask(drive, 'POST', target, cookie)).toContain('for ann');
  });

  test('a page of another origin cannot use the cookie, even with the token', async () => {
    const drive = await gateway({ crossOrigins: ['http://app.x'] });
    const { cookie, token } = await session(drive);
    const lines = `${cookie}${token}Origin: http://app.x\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n`;
    for (const method of ['GET', 'PUT']) expect(statusOf(await ask(drive, method, '/a', lines))).toBe(401);
  });

  test('a change with a Basic login needs no CSRF token, even with a cookie', async () => {
    const drive = await gateway();
    const { cookie } = await session(drive);
    expect(await ask(drive, 'PUT', '/a', cookie + ANN_HEADER)).toContain('for ann token=;');
  });

  test('requests of the application without a session get 401 without the Basic challenge', async () => {
    const drive = await gateway();
    const cookie = `Cookie: davgate-session-${drive.port}=ended\r\n`;
    for (const lines of [cookie, 'X-CSRF-Token: \r\n']) {
      const answer = await ask(drive, 'GET', '/', `Accept: */*\r\n${lines}`);
      expect([statusOf(answer), headerOf(answer, 'www-authenticate')]).toEqual([
        401,
        'Cookie realm="davgate"',
      ]);
    }
  });

  test('signing out ends the session at the gateway, and needs its CSRF token', async () => {
    const drive = await gateway();
    const { cookie, token } = await session(drive);
    expect(statusOf(await ask(drive, 'POST', '/.davgate/sign-out', cookie))).toBe(401);
    expect(statusOf(await ask(drive, 'GET', '/', cookie))).toBe(200);
    const answer = await ask(drive, 'POST', '/.davgate/sign-out', cookie + token);
    expect(statusOf(answer)).toBe(204);
    expect(cookieOf(answer)).toBe(`davgate-session-${drive.port}=ended`);
    expect(statusOf(await ask(drive, 'GET', '/', cookie))).toBe(401);
    expect(drive.lines).toContainEqual({
      event: 'signed out',
      fields: { address: '127.0.0.1', user: 'ann' },
    });
  });

  test('a page of another origin can sign a user out neither with the cookie nor by replacing it', async () => {
    const drive = await gateway({ crossOrigins: ['http://app.x'] });
    const { cookie, token } = await session(drive);
    const allowed = 'Origin: http://app.x\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n';
    for (const lines of [cookie + token + allowed, 'Origin: http://evil.example\r\n'])
      expect(await ask(drive, 'POST', '/.davgate/sign-out', lines)).not.toContain('Set-Cookie');
    expect(statusOf(await ask(drive, 'GET', '/', cookie))).toBe(200);
  });

  test('a session without a request for a day ends', async () => {
    const clock = new ManualClock();
    const drive = await gateway({ clock });
    const { cookie } = await session(drive);
    clock.stepWall(24 * 60 * 60_000);
    expect(statusOf(await ask(drive, 'GET', '/', cookie))).toBe(401);
  });

  test('a reload ends the sessions of removed users and of changed passwords, and keeps the others', async () => {
    const bob = { ...ANN, name: 'bob' };
    const drive = await gateway({ users: [ANN, bob] });
    const ofAnn = await session(drive);
    const ofBob = `Cookie: ${cookieOf(await signIn(drive, { ...RIGHT, name: 'bob' }))}\r\n`;
    drive.listener.reload({ users: [ANN, bob] });
    expect(statusOf(await ask(drive, 'GET', '/', ofBob))).toBe(200);
    drive.listener.reload({ users: [ANN] });
    expect(statusOf(await ask(drive, 'GET', '/', ofAnn.cookie))).toBe(200);
    drive.listener.reload({ users: [ANN, bob] });
    expect(statusOf(await ask(drive, 'GET', '/', ofBob))).toBe(401);
  });

  test('a session gets the details of the health check, and a cookie without a session only the bare answer', async () => {
    const drive = await gateway({ health: () => ({ journalFiles: 7 }) });
    const { cookie } = await session(drive);
    const outside = 'X-Forwarded-For: 192.0.2.1\r\n';
    expect(await ask(drive, 'GET', '/.davgate/healthz', outside + cookie)).toContain('journalFiles');
    const ended = `Cookie: davgate-session-${drive.port}=ended\r\n`;
    const bare = await ask(drive, 'GET', '/.davgate/healthz', outside + ended);
    expect(statusOf(bare)).toBe(200);
    expect(bare).not.toContain('journalFiles');
  });
});
