import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { connectRaw } from '../../support/raw-http.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { type Answered, download, put, refusal, refusalIn, rpc, send } from '../../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;

beforeAll(async () => {
  service = await startTestService({ clock });
});
afterAll(() => service.close());

const HOUR_MS = 60 * 60 * 1000;

describe('files/get_temporary_link', () => {
  const linkTo = (path: string): Promise<Answered> => rpc(service, 'files/get_temporary_link', { path });
  const urlTo = async (path: string) => ((await linkTo(path)).json as { link: string }).link;

  test('get_temporary_link answers FileMetadata without a tag and a link that needs no token', async () => {
    const metadata = await put(service, '/Temp/A file.txt', 'text');
    const answered = await linkTo('/temp/a FILE.txt');
    expect([answered.status, answered.json]).toEqual([
      200,
      { metadata, link: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/cd\/0\/get\/[\w-]{43}\/file$/) },
    ]);
    const bytes = await fetch(await urlTo('/Temp/A file.txt'));
    expect([bytes.status, await bytes.text()]).toEqual([200, 'text']);
    expect(bytes.headers.get('content-disposition')).toContain('filename="A file.txt"');
    const head = await fetch(await urlTo('/Temp/A file.txt'), { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '4']);
  });

  test.each([
    ['a.jpg', 'image/jpeg'],
    ['a.mp4', 'video/mp4'],
    ['a.PDF', 'application/pdf'],
    ['a.html', 'text/html; charset=utf-8'],
    ['a.json', 'application/json'],
    ['a.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    ['a.constructor', 'application/octet-stream'],
    ['none', 'application/octet-stream'],
  ])('a temporary link to %s answers %s as an attachment', async (name, type) => {
    await put(service, `/Types/${name}`, 'text');
    const { headers } = await fetch(await urlTo(`/Types/${name}`));
    expect(headers.get('content-type')).toBe(type);
    expect(headers.get('content-disposition')).toMatch(/^attachment;/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('a temporary link answers ranges and If-None-Match', async () => {
    await put(service, '/Temp/parts', '0123456789');
    const url = await urlTo('/Temp/parts');
    const part = await fetch(url, { headers: { range: 'bytes=2-4' } });
    expect([part.status, await part.text(), part.headers.get('content-range')]).toEqual([
      206,
      '234',
      'bytes 2-4/10',
    ]);
    expect((await fetch(url, { headers: { range: 'bytes=10-' } })).status).toBe(416);
    const etag = part.headers.get('etag') ?? '';
    expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304);
  });

  test('a temporary link answers the revision it was made for, also after a restart, until that is permanently deleted', async () => {
    await put(service, '/Temp/old', 'old');
    const url = await urlTo('/Temp/old');
    await put(service, '/Temp/old', 'new');
    await rpc(service, 'files/delete_v2', { path: '/Temp/old' });
    expect(await (await fetch(url)).text()).toBe('old');
    await rpc(service, 'files/permanently_delete', { path: '/Temp/old' });
    expect((await fetch(url)).status).toBe(404);

    const first = await startTestService();
    await put(first, '/kept', 'kept');
    const made = await rpc(first, 'files/get_temporary_link', { path: '/kept' });
    const { pathname } = new URL((made.json as { link: string }).link);
    await first.service.close();
    const second = await startTestService({ dataDirectory: first.dataDirectory });
    expect(await (await fetch(second.url + pathname)).text()).toBe('kept');
    await second.close();
    await first.close();
  });

  test('a temporary link works for four hours, answers 410 afterwards, and 404 a day later', async () => {
    await put(service, '/Temp/hours', 'text');
    const url = await urlTo('/Temp/hours');
    await clock.advance(4 * HOUR_MS - 1);
    expect((await fetch(url)).status).toBe(200);
    await clock.advance(1);
    expect((await fetch(url)).status).toBe(410);
    // Housekeeping removes the link a day after it expires.
    await clock.advance(24 * HOUR_MS + 1);
    await eventually(async () => {
      await clock.advance(HOUR_MS);
      expect((await fetch(url)).status).toBe(404);
    });
  });

  test('get_temporary_link refuses folders and missing files, and malformed links answer 404', async () => {
    await rpc(service, 'files/create_folder_v2', { path: '/Temp folder' });
    const lookup = (tag: string) => refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } });
    expect(refusalIn(await linkTo('/Temp folder'))).toEqual(lookup('not_file'));
    expect(refusalIn(await linkTo('/Temp/none'))).toEqual(lookup('not_found'));
    for (const path of ['/cd/0/get/unknown/file', '/cd/0/get/', '/cd/0/get/x'])
      expect((await fetch(service.url + path)).status).toBe(404);
    await put(service, '/Temp/method', 'text');
    const posted = await fetch(await urlTo('/Temp/method'), { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test('the secret of a temporary upload link opens no download, and that of a download takes no upload', async () => {
    const { json } = await linkFor({ path: '/Temp/crossed' });
    const secret = (json as { link: string }).link.split('/').at(-1);
    expect((await fetch(`${service.url}/cd/0/get/${secret}/file`)).status).toBe(404);
    await put(service, '/Temp/crossed', 'text');
    const [, downloadSecret] = /get\/([\w-]+)\//.exec(await urlTo('/Temp/crossed')) ?? [];
    expect((await post(`${service.url}/apitul/1/${downloadSecret}`, 'x')).status).toBe(409);
  });
});

const linkFor = (commit_info: object, more: object = {}): Promise<Answered> =>
  rpc(service, 'files/get_temporary_upload_link', { commit_info, ...more });

function post(url: string, body: string, headers: Record<string, string> = {}): Promise<Answered> {
  return send(url, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream', ...headers },
    body,
  });
}

describe('files/get_temporary_upload_link', () => {
  const urlFor = async (commit_info: object, more: object = {}) =>
    ((await linkFor(commit_info, more)).json as { link: string }).link;

  test('a temporary upload link takes one upload with the commit’s mode, autorename and time', async () => {
    const commit = {
      path: '/Up/file',
      mode: 'add',
      autorename: true,
      client_modified: '2001-02-03T04:05:06Z',
    };
    await put(service, '/Up/file', 'old');
    const answered = await linkFor(commit);
    expect([answered.status, answered.json]).toEqual([
      200,
      { link: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/apitul\/1\/[\w-]{43}$/) },
    ]);
    const { link } = answered.json as { link: string };
    const uploaded = await post(link, 'text');
    expect([uploaded.status, uploaded.json]).toEqual([
      200,
      { 'content-hash': contentHashOf(Buffer.from('text')) },
    ]);
    const { json } = await rpc(service, 'files/get_metadata', { path: '/Up/file (1)' });
    expect(json).toMatchObject({ client_modified: '2001-02-03T04:05:06Z', size: 4 });
    expect((await post(link, 'again')).status).toBe(410);
    expect((await download(service, '/Up/file (1)')).text).toBe('text');
  });

  test('a temporary upload link works for the duration asked for, at most four hours', async () => {
    const short = await urlFor({ path: '/Up/short' }, { duration: 60 });
    const long = await urlFor({ path: '/Up/long' });
    await clock.advance(60_000);
    expect((await post(short, 'text')).status).toBe(410);
    expect((await download(service, '/Up/short')).status).toBe(409);
    await clock.advance(4 * HOUR_MS - 60_000);
    expect((await post(long, 'text')).status).toBe(410);
    // Longer than 60 s by a part of a millisecond.
    expect((await post(await urlFor({ path: '/Up/exact' }, { duration: 60.000_5 }), 'text')).status).toBe(
      200,
    );
    for (const duration of [59.9, 14_400.1, '60'])
      expect((await linkFor({ path: '/Up/x' }, { duration })).status).toBe(400);
  });

  test('a temporary upload link whose commit fails answers 409 and can be used again', async () => {
    await put(service, '/Up/taken', 'old');
    const url = await urlFor({ path: '/Up/taken', mode: 'add' });
    const failed = await post(url, 'new');
    expect([failed.status, failed.headers.get('content-type')]).toEqual([409, 'text/plain; charset=utf-8']);
    await rpc(service, 'files/delete_v2', { path: '/Up/taken' });
    expect((await post(url, 'new')).status).toBe(200);
    expect((await post(await urlFor({ path: '/Up//bad' }), 'x')).status).toBe(409);
  });

  test('a temporary upload link whose upload breaks off stores nothing and can be used again', async () => {
    const url = await urlFor({ path: '/Up/broken' });
    const { port, pathname } = new URL(url);
    const head = `POST ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n`;
    const raw = connectRaw(Number(port), `${head}Expect: 100-continue\r\nContent-Length: 10\r\n\r\n`);
    await raw.until('100 Continue');
    raw.send('half');
    expect((await post(url, 'meanwhile')).status).toBe(409);
    raw.socket.destroy();
    let retried = await post(url, 'whole');
    while (retried.status === 409) retried = await post(url, 'whole');
    expect(retried.status).toBe(200);
    expect((await download(service, '/Up/broken')).text).toBe('whole');
  });

  test('a refused upload to a temporary upload link leaves no blocks', async () => {
    await put(service, '/Up/kept', 'old');
    const url = await urlFor({ path: '/Up/kept', mode: 'add' });
    const bytes = pseudoRandomBytes(100_000, 9);
    expect(
      (
        await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/octet-stream' },
          body: bytes,
        })
      ).status,
    ).toBe(409);
    const blocks = await readdir(join(service.dataDirectory, 'blocks'));
    expect(blocks).not.toContain(createHash('sha256').update(bytes).digest('hex'));
  });

  test('temporary upload links refuse a malformed path, an unknown link, GET, and a wrong type or encoding of the body', async () => {
    expect((await linkFor({ path: 'rubbish' })).status).toBe(400);
    expect((await post(`${service.url}/apitul/1/unknown`, 'x')).status).toBe(409);
    const url = await urlFor({ path: '/Up/typed' });
    expect((await post(url, '{}', { 'content-type': 'application/json' })).status).toBe(400);
    expect((await fetch(url)).status).toBe(405);
    expect((await post(url, 'text', { 'content-encoding': 'gzip' })).status).toBe(400);
  });

  test('a temporary upload link answers a preflight and an upload with CORS headers', async () => {
    const url = await urlFor({ path: '/Up/from a page' });
    const headers = { origin: 'https://page.example', 'access-control-request-headers': 'content-type' };
    const preflight = await fetch(url, { method: 'OPTIONS', headers });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
    expect(
      (await post(url, 'x', { origin: 'https://page.example' })).headers.get('access-control-allow-origin'),
    ).toBe('*');
  });
});
