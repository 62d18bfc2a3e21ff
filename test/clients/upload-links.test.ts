import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectSoon } from '../support/eventually.ts';
import { REFUSED_NAME } from '../support/odd-names.ts';
import { cheapHash, type Program, startProgram, temporaryDirectory } from '../support/program.ts';

// Upload links by HTTP: what people without a login can do by one, and what it refuses.

const HASH = cheapHash('p');
const user = (name: string, more: object) => ({ name, 'password-hash': HASH, drive: 'work', ...more });
const USERS = [
  user('ann', {}),
  user('bob', { root: '/Bob', quota: 20 }),
  user('eve', { folders: { '/Private': 'hidden', '/Public': 'read-only', '/Public/Inbox': 'read-write' } }),
  user('joe', {}),
  user('kim', {}),
];

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;
const file = () => join(directory.path, 'davgate.json');
const configure = (users: readonly object[]) =>
  writeFile(file(), JSON.stringify({ drives: { work: {} }, users }));

beforeAll(async () => {
  directory = await temporaryDirectory();
  await configure(USERS);
  const dataDirectory = join(directory.path, 'data');
  program = await startProgram({ dataDirectory, login: 'configured', args: ['--config', file()] });
  for (const folder of ['Inbox', 'Private', 'Public', 'Public/Inbox', 'Later'])
    expect((await as('ann', 'MKCOL', `/${folder}`)).status).toBe(201);
  expect((await as('bob', 'MKCOL', '/Inbox')).status).toBe(201);
});
afterAll(async () => {
  await program.stop();
  await directory.remove();
});

function as(name: string, method: string, path: string, body?: string): Promise<Response> {
  const authorization = `Basic ${Buffer.from(`${name}:p`).toString('base64')}`;
  const headers = { authorization, ...(path.includes('/api/') && { 'content-type': 'application/json' }) };
  return fetch(new URL(path, program.url), { method, headers, ...(body !== undefined && { body }) });
}

const call = (name: string, action: string, values: object) =>
  as(name, 'POST', `/.davgate/api/${action}`, JSON.stringify(values));

/** Makes a link, and returns its token. */
async function made(name: string, values: object): Promise<string> {
  const answer = await call(name, 'make-upload-link', { label: 'For me', ...values });
  const { url } = (await answer.json()) as { readonly url: string };
  expect(url).toMatch(/^http:.*\/\.davgate\/send#[\w-]{27}$/);
  return url.split('#')[1] ?? '';
}

interface Sent {
  readonly status: number;
  readonly text: string;
}

/** Sends a request of the page of a link. */
async function send(
  token: string,
  action: string,
  values?: Readonly<Record<string, string>>,
  { key = '', body }: { readonly key?: string; readonly body?: string } = {},
): Promise<Sent> {
  const isGet = values === undefined || action === 'upload-state';
  const query = isGet || body !== undefined ? `?${new URLSearchParams(values)}` : '';
  const headers = {
    ...{ 'x-upload-link': token, 'x-upload-key': key },
    'content-type': body === undefined ? 'application/json' : 'application/octet-stream',
  };
  const answer = await fetch(new URL(`/.davgate/send/${action}${query}`, program.url), {
    method: isGet ? 'GET' : 'POST',
    headers,
    ...(!isGet && { body: body ?? JSON.stringify(values) }),
  });
  return { status: answer.status, text: await answer.text() };
}

/** Sends a whole file; returns the first refusal, or the last answer. */
async function sendFile(token: string, name: string, content: string, key = ''): Promise<Sent> {
  const begun = await send(token, 'upload', { name, size: String(Buffer.byteLength(content)) }, { key });
  if (begun.status !== 200) return begun;
  const { id } = JSON.parse(begun.text) as { readonly id: string };
  return send(token, 'upload-part', { id, offset: '0' }, { key, body: content });
}

const textAt = async (name: string, path: string) => {
  const answer = await as(name, 'GET', path);
  return answer.ok ? answer.text() : answer.status;
};

const linksOf = async (name: string) => {
  const answer = await as(name, 'GET', '/.davgate/api/upload-links');
  return (
    (await answer.json()) as {
      readonly links: readonly { readonly id: string; readonly usedBytes: number }[];
    }
  ).links;
};

describe('people without a login', () => {
  test('they send files into the folder, and never replace one', async () => {
    const token = await made('ann', { path: '/Inbox' });
    expect(await send(token, 'about')).toEqual({
      status: 200,
      text: '{"needsPassword":false,"label":"For me"}',
    });
    for (const content of ['first', 'second', 'third'])
      expect(await sendFile(token, 'Report.txt', content)).toEqual({
        status: 200,
        text: `{"receivedBytes":${content.length},"isStored":true}`,
      });
    expect((await sendFile(token, 'REPORT.TXT', 'fourth')).status).toBe(200);
    expect((await sendFile(token, 'empty', '')).status).toBe(200);
    expect(await textAt('ann', '/Inbox/Report.txt')).toBe('first');
    expect(await textAt('ann', '/Inbox/Report (1).txt')).toBe('second');
    expect(await textAt('ann', '/Inbox/Report (2).txt')).toBe('third');
    expect(await textAt('ann', '/Inbox/REPORT (3).TXT')).toBe('fourth');
    expect(await textAt('ann', '/Inbox/empty')).toBe('');
    expect((await linksOf('ann')).map(({ usedBytes }) => usedBytes)).toEqual([22]);
  });

  test('files of the same name that are sent at the same time are all kept', async () => {
    const token = await made('ann', { path: '/Inbox' });
    const contents = ['1', '2', '3', '4'];
    const sent = await Promise.all(contents.map((content) => sendFile(token, 'Same.bin', content)));
    expect(sent.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const names = ['Same.bin', 'Same (1).bin', 'Same (2).bin', 'Same (3).bin'];
    const stored = await Promise.all(names.map((name) => textAt('ann', `/Inbox/${name}`)));
    expect(stored.sort()).toEqual(contents);
  });

  test('a file goes on after its connection has broken, and one that is given up is not stored', async () => {
    const token = await made('ann', { path: '/Inbox' });
    const begin = async (name: string) =>
      (JSON.parse((await send(token, 'upload', { name, size: '6' })).text) as { readonly id: string }).id;
    const id = await begin('parts.txt');
    await send(token, 'upload-part', { id, offset: '0' }, { body: 'abc' });
    expect(await send(token, 'upload-state', { id })).toEqual({
      status: 200,
      text: '{"receivedBytes":3,"isStored":false}',
    });
    expect(await textAt('ann', '/Inbox/parts.txt')).toBe(404);
    await send(token, 'upload-part', { id, offset: '3' }, { body: 'def' });
    expect(await textAt('ann', '/Inbox/parts.txt')).toBe('abcdef');
    const other = await begin('given-up.txt');
    await send(token, 'upload-part', { id: other, offset: '0' }, { body: 'abc' });
    expect((await send(token, 'end-upload', { id: other })).status).toBe(200);
    expect(await textAt('ann', '/Inbox/given-up.txt')).toBe(404);
    const another = await made('ann', { path: '/Inbox' });
    expect((await send(another, 'upload-state', { id })).status).toBe(404);
  });

  test('they see nothing of the drive, and reach no other function', async () => {
    const token = await made('ann', { path: '/Inbox' });
    for (const path of ['/Inbox/', '/Inbox/Report.txt', '/.davgate/api/links', '/.davgate/api/upload-links'])
      expect((await fetch(new URL(path, program.url), { headers: { 'x-upload-link': token } })).status).toBe(
        401,
      );
    for (const action of ['drive', 'links', '../api/drive', 'zip'])
      expect((await send(token, action)).status).toBe(401);
  });

  test.each(['../x', 'a/b', '..', '.', '', '.davgate', '.hidden', 'a\u0000b', 'a\nb', REFUSED_NAME])(
    'the name %j is refused without naming the folder, and nothing is stored',
    async (name) => {
      const token = await made('ann', { path: '/Later' });
      const { status, text } = await sendFile(token, name, 'x');
      expect([400, 422]).toContain(status);
      expect(text).not.toContain('Later');
      const listed = await as('ann', 'PROPFIND', '/Later/');
      expect((await listed.text()).match(/<D:response>/g)).toHaveLength(1);
    },
  );
});

describe('the limits of a link', () => {
  test('a link with a size takes no more than that, and gives back what was not stored', async () => {
    const token = await made('ann', { path: '/Inbox', size: '10' });
    expect((await sendFile(token, 'six', '123456')).status).toBe(200);
    expect((await sendFile(token, 'five', '12345')).status).toBe(413);
    const { text } = await send(token, 'upload', { name: 'gone', size: '4' });
    expect((await sendFile(token, 'one', '1')).status).toBe(413);
    await send(token, 'end-upload', { id: (JSON.parse(text) as { readonly id: string }).id });
    await expectSoon(async () => (await send(token, 'about')).text).toContain('"leftBytes":4');
    expect((await sendFile(token, 'four', '1234')).status).toBe(200);
    expect(await send(token, 'about')).toEqual({
      status: 200,
      text: '{"needsPassword":false,"label":"For me","leftBytes":0}',
    });
    expect((await send(token, 'upload', { name: 'x', size: '1x' })).status).toBe(400);
  });

  test('a link does not take more than the quota of its user', async () => {
    const token = await made('bob', { path: '/Inbox' });
    expect((await sendFile(token, 'a', 'x'.repeat(15))).status).toBe(200);
    const { status, text } = await sendFile(token, 'b', 'x'.repeat(15));
    expect([status, text]).toEqual([507, 'there is no room for this file\n']);
    expect((await sendFile(token, 'c', 'x'.repeat(5))).status).toBe(200);
  });

  test('a password is asked for before anything else, and guesses have to wait', async () => {
    const token = await made('ann', { path: '/Inbox', password: 'sesame' });
    expect(await send(token, 'about')).toEqual({ status: 200, text: '{"needsPassword":true}' });
    expect((await sendFile(token, 'locked', 'x')).status).toBe(401);
    expect((await sendFile(token, 'locked', 'x', 'key')).status).toBe(401);
    const { text } = await send(token, 'unlock', { password: 'sesame' });
    const { key } = JSON.parse(text) as { readonly key: string };
    expect((await sendFile(token, 'unlocked', 'x', key)).status).toBe(200);
    const other = await made('ann', { path: '/Inbox', password: 'sesame' });
    expect((await sendFile(other, 'locked', 'x', key)).status).toBe(401);
    const guess = async (number: number) =>
      (await send(other, 'unlock', { password: `guess ${number}` })).status;
    expect([await guess(0), await guess(1), await guess(2)]).toEqual([403, 403, 403]);
    // The waits double: a machine that pauses for seconds meets a later one.
    let number = 3;
    await expectSoon(() => guess(number++)).toBe(429);
    expect(number).toBeLessThan(15);
    expect(await textAt('ann', '/Inbox/locked')).toBe(404);
  });

  test('a link ends at its time, and by its user alone', async () => {
    const past = await made('ann', { path: '/Inbox', expires: '2020-01-01T00:00:00Z' });
    const token = await made('ann', { path: '/Inbox', expires: '2099-01-01T00:00:00Z' });
    expect((await sendFile(past, 'late', 'x')).status).toBe(404);
    expect((await sendFile(token, 'early', 'x')).status).toBe(200);
    const { id = '' } = (await linksOf('ann')).at(-1) ?? {};
    expect((await call('eve', 'end-upload-link', { id })).status).toBe(404);
    expect((await call('ann', 'end-upload-link', { id })).status).toBe(200);
    expect((await sendFile(token, 'late', 'x')).status).toBe(404);
    expect((await send(token, 'about')).status).toBe(404);
    expect((await send('x'.repeat(27), 'about')).status).toBe(404);
    expect((await send('', 'about')).status).toBe(404);
  });

  test('a link is made only for a folder in which the user may write', async () => {
    const statuses: Record<string, number> = {};
    for (const path of ['/Public', '/Private', '/none', '/Public/Inbox'])
      statuses[path] = (await call('eve', 'make-upload-link', { path, label: 'x' })).status;
    expect(statuses).toEqual({ '/Public': 403, '/Private': 404, '/none': 404, '/Public/Inbox': 200 });
    for (const label of ['', ' ', 'x'.repeat(101), 'a\nb'])
      expect((await call('ann', 'make-upload-link', { path: '/Inbox', label })).status).toBe(400);
    const anonymous = await fetch(new URL('/.davgate/api/make-upload-link', program.url), { method: 'POST' });
    expect(anonymous.status).toBe(401);
  });
});

test('a link has the rights that its user has at that time, and none after a reload without the user', async () => {
  const [joe, kim, ann] = [
    await made('joe', { path: '/Inbox' }),
    await made('kim', { path: '/Inbox' }),
    await made('ann', { path: '/Later' }),
  ];
  for (const token of [joe, kim]) expect((await sendFile(token, 'before', 'x')).status).toBe(200);
  const begun = await send(kim, 'upload', { name: 'between', size: '1' });
  const id = (JSON.parse(begun.text) as { readonly id: string }).id;
  const others = USERS.filter(({ name }) => name !== 'joe' && name !== 'kim');
  await configure([...others, user('kim', { 'read-only': true })]);
  process.kill(program.pid, 'SIGHUP');
  await expectSoon(async () => (await send(kim, 'about')).status).toBe(403);
  expect((await sendFile(kim, 'after', 'x')).status).toBe(403);
  expect((await send(kim, 'upload-part', { id, offset: '0' }, { body: 'x' })).status).toBe(404);
  expect((await sendFile(joe, 'after', 'x')).status).toBe(404);
  expect((await as('ann', 'DELETE', '/Later')).status).toBe(204);
  expect((await sendFile(ann, 'after', 'x')).status).toBe(404);
  expect(await textAt('ann', '/Inbox/after')).toBe(404);
});

test('neither the log nor the state has the token of a link', async () => {
  const token = await made('ann', { path: '/Inbox', password: 'open sesame' });
  await send(token, 'about');
  await send(token, 'unlock', { password: 'wrong' });
  await expectSoon(() => program.output()).toContain('wrong password of an upload link');
  expect(program.output()).not.toContain(token);
  expect(program.output()).not.toContain('sesame');
});
