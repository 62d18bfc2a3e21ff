import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { parseMultistatus } from '../../../support/multistatus.ts';

// The drive at the address at which Nextcloud serves the files of a user.

const FILES = '/remote.php/dav/files/ann';

let dav: DavServer;
beforeEach(async () => {
  dav = await startDav();
  await dav.file('/folder/a b.txt', 'text');
});
afterEach(() => dav.close());

async function hrefsAt(target: string): Promise<readonly string[]> {
  const { status, text } = await dav.send('PROPFIND', target, { headers: { Depth: 'infinity' } });
  expect(status).toBe(207);
  return (await parseMultistatus(text)).map(({ href }) => href);
}

test('PROPFIND below files/USER answers with addresses below it, and elsewhere without it', async () => {
  const there = [`${FILES}/`, `${FILES}/folder/`, `${FILES}/folder/a%20b.txt`];
  expect(await hrefsAt(FILES)).toEqual(there);
  expect(await hrefsAt(`${FILES}/`)).toEqual(there);
  expect(await hrefsAt('/')).toEqual(['/', '/folder/', '/folder/a%20b.txt']);
});

test.each([
  ['with repeated slashes', () => '//remote.php//dav//files/ann/'],
  ['with escapes', () => '/remote%2ephp/d%61v/files/ann/'],
  ['with scheme and host', () => `${dav.url}${FILES}/`],
])('the address of the files is recognised %s', async (_, target) => {
  expect(await hrefsAt(target())).toEqual([`${FILES}/`, `${FILES}/folder/`, `${FILES}/folder/a%20b.txt`]);
});

test('PUT, GET, MKCOL, COPY, MOVE and DELETE below files/USER work on the drive', async () => {
  const put = await dav.send('PUT', `${FILES}/new.txt`, { body: 'new' });
  expect([put.status, put.headers.location, dav.content('/new.txt')]).toEqual([
    201,
    `${FILES}/new.txt`,
    'new',
  ]);
  expect((await dav.send('GET', `${FILES}/folder/a%20b.txt`)).text).toBe('text');
  expect((await dav.send('MKCOL', `${FILES}/made/`)).status).toBe(201);
  const headers = { Destination: `${dav.url}${FILES}/made/copy.txt` };
  expect((await dav.send('COPY', `${FILES}/new.txt`, { headers })).status).toBe(201);
  expect((await dav.send('MOVE', `${FILES}/new.txt`, { headers })).status).toBe(204);
  expect((await dav.send('DELETE', `${FILES}/folder/`)).status).toBe(204);
  expect(dav.files.paths()).toEqual(['/made/', '/made/copy.txt']);
});

test('below a base path, answers name addresses below both', async () => {
  const based = await startDav({ basePath: '/team' });
  await based.file('/a.txt');
  const headers = { Depth: '1', Destination: `/team${FILES}/b.txt` };
  const { text } = await based.send('PROPFIND', `/team${FILES}/`, { headers });
  expect((await parseMultistatus(text)).map(({ href }) => href)).toEqual([
    `/team${FILES}/`,
    `/team${FILES}/a.txt`,
  ]);
  expect((await based.send('MOVE', `/team${FILES}/a.txt`, { headers })).headers.location).toBe(
    `/team${FILES}/b.txt`,
  );
  await based.close();
});

test('a Destination outside of files/USER answers 403', async () => {
  for (const to of ['/new.txt', '/remote.php/dav/files/bob/new.txt', '/remote.php/dav/uploads/ann/x']) {
    const answer = await dav.send('MOVE', `${FILES}/folder/`, { headers: { Destination: to } });
    expect(answer.status).toBe(403);
  }
  expect(dav.content('/folder/a b.txt')).toBe('text');
});

test('the folder /.davgate is not served below files/USER, and nothing can be moved there', async () => {
  expect((await dav.send('PUT', `${FILES}/.davgate/x`, { body: 'x' })).status).toBe(403);
  expect((await dav.send('PUT', `${FILES}/%2eDavgate/x`, { body: 'x' })).status).toBe(403);
  const headers = { Destination: `${FILES}/.davgate` };
  expect((await dav.send('MOVE', `${FILES}/folder/`, { headers })).status).toBe(403);
  expect(dav.files.paths()).toEqual(['/folder/', '/folder/a b.txt']);
});

test('a name with escapes is compared decoded, and answers keep its spelling', async () => {
  const files = '/remote.php/dav/files/%61nn';
  expect(await hrefsAt(`${files}/folder/`)).toEqual([`${files}/folder/`, `${files}/folder/a%20b.txt`]);
});

test('a browser that opens a folder below files/USER is led to the same folder of the drive', async () => {
  const headers = { Accept: 'text/html' };
  const answer = await dav.send('GET', `${FILES}//folder/`, { headers });
  expect([answer.status, answer.headers.location]).toEqual([302, '/folder/']);
  const hostile = await dav.send('GET', `${FILES}//evil.example/`, { headers });
  expect(hostile.headers.location).toBe('/evil.example/');
});

test('other addresses of Nextcloud answer 404 with that of the files', async () => {
  for (const target of [
    '/remote.php/dav',
    '/remote.php/dav/',
    '/remote.php/dav/files/',
    '/remote.php/dav/calendars/ann/',
  ]) {
    const answer = await dav.send('PROPFIND', target, { headers: { Depth: '0' } });
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('/files/USER/')]);
  }
  expect((await dav.send('PROPFIND', '/remote.php/dav/uploads/ann/')).status).toBe(404);
});
