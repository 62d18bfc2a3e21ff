import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type FailingFront, startFailingFront } from '../../support/failing-front.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { ok, refuse, ScriptedService } from '../../support/scripted-service.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { rpc, sharedLink } from '../../support/service-client.ts';

// The functions for shared links, over the embedded service.

let service: TestService;
let front: FailingFront;
let gateway: TestGateway;

beforeAll(async () => {
  service = await startTestService();
  front = await startFailingFront(service.url);
  gateway = await startTestGateway({ service: { ...service, url: front.url } });
  await gateway.following();
});
afterAll(async () => {
  await gateway.close();
  await front.close();
  await service.close();
});

interface Answer {
  readonly status: number;
  /** The JSON of a success, the sentence of a refusal. */
  readonly body: unknown;
}

async function answerOf(answer: Response): Promise<Answer> {
  const { status } = answer;
  return { status, body: answer.ok ? await answer.json() : (await answer.text()).trim() };
}

async function ask(query: Readonly<Record<string, string>> = {}, at = gateway.url): Promise<Answer> {
  return answerOf(await fetch(`${at}/.davgate/api/links?${new URLSearchParams(query)}`));
}

async function call(
  name: string,
  values: Readonly<Record<string, string>>,
  at = gateway.url,
): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(values) };
  return answerOf(await fetch(`${at}/.davgate/api/${name}`, init));
}

/** Stores a file, or a folder if `path` ends with a slash. */
async function put(path: string): Promise<void> {
  const init = path.endsWith('/') ? { method: 'MKCOL' } : { method: 'PUT', body: 'shared' };
  expect((await fetch(gateway.url + encodeURI(path), init)).status).toBe(201);
}

/** Makes a file and its link, and returns the link. */
async function shared(path: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  await put(path);
  const { status, body } = await call('share', { path, ...more });
  expect([status, body]).toEqual([200, expect.objectContaining({ url: expect.stringMatching(/^http/) })]);
  return (body as { url: string }).url;
}

const gone = (path: string): Answer => ({ status: 404, body: `the link to ${path} is gone` });

test('share makes a link that everyone can open, and links shows it', async () => {
  const path = '/Made Here.txt';
  const url = await shared(path);
  expect((await fetch(url)).status).toBe(200);
  const link = { url, visibility: 'public', kind: 'file', path };
  expect(await ask({ path })).toEqual({ status: 200, body: { links: [link] } });
});

test('links of the whole drive has files and folders, and those that other programs have shared', async () => {
  await put('/all/');
  const url = await shared('/all/One.txt');
  const ofFolder = await sharedLink(service, '/all');
  const { status, body } = await ask();
  expect(status).toBe(200);
  expect(body).toEqual({
    links: expect.arrayContaining([
      { url, visibility: 'public', kind: 'file', path: '/all/One.txt' },
      { url: ofFolder, visibility: 'public', kind: 'folder', path: '/all' },
    ]),
  });
});

test('a link is made with a password and an expiry, and each is changed and removed by itself', async () => {
  const path = '/settings.txt';
  const expires = '2100-01-31T12:00:00Z';
  const expiresMs = Date.parse(expires);
  const url = await shared(path, { password: 'sesame', expires });
  const opened = async (password: string) =>
    (await rpc(service, 'sharing/get_shared_link_metadata', { url, link_password: password })).status;
  const change = async (values: Readonly<Record<string, string>>) =>
    (await call('change-link', { path, url, ...values })).body;
  expect((await ask({ path })).body).toMatchObject({ links: [{ visibility: 'password', expiresMs }] });
  expect(await change({ expires: 'never' })).toEqual({ url, visibility: 'password' });
  expect(await change({ expires })).toEqual({ url, visibility: 'password', expiresMs });
  expect(await change({ password: 'another' })).toEqual({ url, visibility: 'password', expiresMs });
  expect(await opened('another')).toBe(200);
  expect(await change({ visibility: 'public' })).toEqual({ url, visibility: 'public', expiresMs });
});

test('unshare ends the link, and a second time answers 404', async () => {
  const path = '/ended.txt';
  const url = await shared(path);
  expect(await call('unshare', { path, url })).toEqual({ status: 200, body: {} });
  expect((await fetch(url)).status).toBe(404);
  expect(await ask({ path })).toEqual({ status: 200, body: { links: [] } });
  expect(await call('unshare', { path, url })).toEqual(gone(path));
  expect(await call('change-link', { path, url, expires: 'never' })).toEqual(gone(path));
});

test('a link of another path is neither changed nor revoked', async () => {
  const url = await shared('/mine.txt');
  await put('/other.txt');
  expect(await call('unshare', { path: '/other.txt', url })).toEqual(gone('/other.txt'));
  expect(await call('change-link', { path: '/other.txt', url, password: 'x' })).toEqual(gone('/other.txt'));
  expect((await fetch(url)).status).toBe(200);
});

test('a drive neither lists, changes nor revokes links outside its root', async () => {
  await put('/room/');
  const outside = await shared('/outside.txt');
  const inside = await shared('/room/inside.txt');
  const room = await startTestGateway({ service, root: '/room' });
  try {
    expect((await ask({}, room.url)).body).toMatchObject({ links: [{ url: inside, path: '/inside.txt' }] });
    const values = { path: '/inside.txt', url: outside };
    expect((await call('unshare', values, room.url)).status).toBe(404);
    expect((await call('change-link', { ...values, password: 'x' }, room.url)).status).toBe(404);
    expect((await fetch(outside)).status).toBe(200);
  } finally {
    await room.close();
  }
});

test('a path without an entry is answered 404 by every function', async () => {
  const path = '/none.txt';
  const missing = { status: 404, body: '/none.txt is not there' };
  expect(await ask({ path })).toEqual(missing);
  expect(await call('share', { path })).toEqual(missing);
  expect(await call('unshare', { path, url: 'https://links.example/1' })).toEqual(missing);
});

test('share of a path that is shared answers 409 and keeps its link', async () => {
  const path = '/twice.txt';
  const url = await shared(path);
  expect(await call('share', { path, password: 'sesame' })).toEqual({
    status: 409,
    body: '/twice.txt is shared already',
  });
  expect((await ask({ path })).body).toMatchObject({ links: [{ url, visibility: 'public' }] });
});

test('settings that the service refuses are answered 403 with its reason', async () => {
  const path = '/refused.txt';
  const url = await shared(path);
  expect(await call('change-link', { path, url, expires: '2020-01-01T00:00:00Z' })).toEqual({
    status: 403,
    body: 'the account may not share /refused.txt with these settings (settings_error/invalid_settings)',
  });
});

test('an account that may set no password is told so, and the password is in no log and no answer', async () => {
  const basic = await ScriptedService.start();
  const notAuthorized = refuse(
    { '.tag': 'settings_error', settings_error: { '.tag': 'not_authorized' } },
    'settings_error/not_authorized',
  );
  const metadata = { '.tag': 'folder', id: 'id:1', name: 'a', path_lower: '/a', path_display: '/a' };
  basic
    .on('oauth2/token', ok({ access_token: 'sl.1', expires_in: 14_400, token_type: 'bearer' }))
    .on('files/get_metadata', ok(metadata))
    .on('files/list_folder', ok({ entries: [metadata], cursor: 'c', has_more: false }))
    .on('sharing/create_shared_link_with_settings', notAuthorized);
  const { appKey, appSecret, refreshToken } = service;
  const small = await startTestGateway({
    service: { url: basic.url, appKey, appSecret, refreshToken },
  });
  try {
    const answer = await call('share', { path: '/a', password: 'opensesame' }, small.url);
    expect(answer).toEqual({
      status: 403,
      body: 'the account may not share /a with these settings (settings_error/not_authorized)',
    });
    expect(JSON.stringify([small.errors, small.warnings])).not.toContain('opensesame');
  } finally {
    await small.close();
    await basic.close();
  }
});

test.each([
  ['share', { path: '/x', expires: 'soon' }, '"expires" is no time; send it as 2030-01-31T12:00:00Z'],
  [
    'share',
    { path: '/x', expires: '+012000-01-01T00:00:00Z' },
    '"expires" is no time; send it as 2030-01-31T12:00:00Z',
  ],
  ['share', {}, '"path" is missing; send it as text that is not empty'],
  ['unshare', { path: '/x' }, '"url" is missing; send it as text that is not empty'],
  ['change-link', { path: '/x', url: 'u' }, 'no change was sent; send "password", "visibility" or "expires"'],
  [
    'change-link',
    { path: '/x', url: 'u', visibility: 'public', password: 'p' },
    '"visibility" can only be public, and without a password',
  ],
])('%s of %o is answered 400', async (name, values, body) => {
  expect(await call(name, values)).toEqual({ status: 400, body });
});

test('while the service is away every function is answered 503, and a password is in no log', async () => {
  const path = '/away.txt';
  const url = await shared(path);
  const impatient = await startTestGateway({ service: { ...service, url: front.url }, deadlineMs: 0 });
  onTestFinished(() => impatient.close());
  await impatient.following();
  front.leave({ status: 503 });
  try {
    const answers = [
      await ask({}, impatient.url),
      await ask({ path }, impatient.url),
      await call('share', { path, password: 'opensesame' }, impatient.url),
      await call('change-link', { path, url, password: 'opensesame' }, impatient.url),
      await call('unshare', { path, url }, impatient.url),
    ];
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
    expect(answers[0]?.body).toBe('the storage service is out of order; try again later');
  } finally {
    front.comeBack();
  }
  expect(JSON.stringify([impatient.errors, impatient.warnings])).not.toContain('opensesame');
  expect((await fetch(url)).status).toBe(200);
});
