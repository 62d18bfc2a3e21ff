import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { Networks } from '../../src/util/networks.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { eventually } from '../support/eventually.ts';
import { finished } from '../support/jobs.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { DOWNLOAD_FAILED, endOfSave, launchSave } from '../support/save-url.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, download, put, refusal, refusalIn, rpc, upload } from '../support/service-client.ts';
import { startWebHost, type WebHost } from '../support/web-host.ts';

const LOOPBACK = new Networks(['127.0.0.1']);
const NO_SPACE = {
  '.tag': 'failed',
  failed: { '.tag': 'path', path: { '.tag': 'insufficient_space' } },
};

let service: TestService;
let host: WebHost;
/** Handler of requests to the host. */
let answer: RequestListener;

beforeAll(async () => {
  service = await startTestService({ webFiles: { allowedNetworks: LOOPBACK } });
  host = await startWebHost((request, response) => answer(request, response));
});
afterAll(async () => {
  await service.close();
  await host.close();
});

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function started(...options: Parameters<typeof startTestService>): Promise<TestService> {
  const other = await startTestService(...options);
  closers.push(() => other.close());
  return other;
}

const save = (url: string, path: string, token?: string) => launchSave(service, url, path, token);
const ended = (launched: Answered, token?: string) => endOfSave(service, launched, token);
const saved = async (url: string, path: string) => ended(await save(url, path));

const says =
  (body: Uint8Array | string, status = 200, headers = {}): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body);

describe('files/save_url', () => {
  test('save_url stores the bytes at a URL as a file and creates its folders, and list_folder/continue lists them', async () => {
    const bytes = pseudoRandomBytes(9_000_000, 1);
    answer = says(bytes);
    const listed = await rpc(service, 'files/list_folder', { path: '', recursive: true });
    const launched = await save(`${host.url}/film?part=1#top`, '/New/Films/film');
    expect([launched.status, launched.json]).toEqual([
      200,
      { '.tag': 'async_job_id', async_job_id: expect.stringMatching(/^dbjid:/) },
    ]);
    const state = await ended(launched);
    const { json } = await rpc(service, 'files/get_metadata', { path: '/New/Films/film' });
    expect(state).toEqual({ ...(json as object), '.tag': 'complete' });
    expect(state).toMatchObject({ size: bytes.length, path_display: '/New/Films/film' });
    expect(host.asked.at(-1)).toBe('/film?part=1');
    const { cursor } = listed.json as { cursor: string };
    const changes = (await rpc(service, 'files/list_folder/continue', { cursor })).json;
    expect((changes as { entries: { path_lower: string }[] }).entries.map((one) => one.path_lower)).toEqual([
      '/new',
      '/new/films',
      '/new/films/film',
    ]);
  });

  test('save_url takes a free name when the name is taken, also by the same bytes', async () => {
    answer = says('text');
    await put(service, '/taken.txt', 'text');
    expect(await saved(host.url, '/taken.txt')).toMatchObject({
      '.tag': 'complete',
      path_display: '/taken (1).txt',
    });
    expect((await download(service, '/taken (1).txt')).text).toBe('text');
  });

  test('save_url sends the user and password of a URL to its host', async () => {
    answer = ({ headers }, response) => void response.end(headers.authorization);
    await saved(host.url.replace('//', '//ann:secret@'), '/authorized');
    expect((await download(service, '/authorized')).text).toBe(
      `Basic ${Buffer.from('ann:secret').toString('base64')}`,
    );
  });

  test.each([
    '',
    'film',
    '/film',
    '//host/film',
    'ftp://example.org/film',
    'file:///etc/passwd',
    'data:,text',
    'http://',
    'http://exa mple.org/',
  ])('save_url of %j answers invalid_url at once', async (url) => {
    expect(refusalIn(await save(url, '/invalid'))).toEqual(
      refusal(409, 'invalid_url', { '.tag': 'invalid_url' }),
    );
  });

  test('save_url refuses a malformed path, and its job fails with the WriteError of an unwritable one', async () => {
    expect((await save(host.url, 'x')).status).toBe(400);
    expect((await save(host.url, 'id:x')).status).toBe(400);
    expect((await save(host.url, '/')).status).toBe(409);
    answer = says('text');
    await put(service, '/file', 'text');
    for (const [path, reason] of [
      ['/file/below', { '.tag': 'conflict', conflict: { '.tag': 'file_ancestor' } }],
      ['/a//b', { '.tag': 'malformed_path' }],
      ['/Thumbs.db', { '.tag': 'disallowed_name' }],
    ] as const)
      expect(await saved(host.url, path), path).toEqual({
        '.tag': 'failed',
        failed: { '.tag': 'path', path: reason },
      });
  });

  test.each<[string, RequestListener]>([
    ['404', says('none', 404)],
    ['500', says('broken', 500)],
    ['204', says('', 204)],
    ['401', says('', 401, { 'www-authenticate': 'Basic realm="x"' })],
    ['bytes in an encoding that was not asked for', says('\x1f\x8b', 200, { 'content-encoding': 'gzip' })],
    ['a redirect to nowhere', says('', 302)],
    ['a redirect to a file of this machine', says('', 302, { location: 'file:///etc/passwd' })],
    ['fewer bytes than its length says', cut({ 'content-length': '100' })],
    ['chunks without an end', cut({})],
    ['no HTTP', ({ socket }) => void socket.end('220 smtp\r\n')],
  ])(
    'save_url from a host that answers %s fails with download_failed and stores nothing',
    async (_what, handler) => {
      answer = handler;
      expect(await saved(host.url, '/failed')).toEqual(DOWNLOAD_FAILED);
      expect((await rpc(service, 'files/get_metadata', { path: '/failed' })).status).toBe(409);
    },
  );

  test('save_url from a host that is not found or refuses the connection fails with download_failed', async () => {
    const gone = await startWebHost(says(''));
    await gone.close();
    expect(await saved(gone.url, '/gone')).toEqual(DOWNLOAD_FAILED);
    expect(await saved('http://davgate.invalid/', '/gone')).toEqual(DOWNLOAD_FAILED);
  });

  test('save_url follows ten redirects and fails at the eleventh', async () => {
    answer = ({ url = '' }, response) => {
      const left = Number(url.slice(1));
      if (left === 0) response.end('there');
      else
        response.writeHead([301, 302, 303, 307, 308][left % 5] ?? 302, { location: `./${left - 1}` }).end();
    };
    expect(await saved(`${host.url}/10`, '/redirected')).toMatchObject({ '.tag': 'complete', size: 5 });
    expect(await saved(`${host.url}/11`, '/redirected-more')).toEqual(DOWNLOAD_FAILED);
  });
});

describe('files/save_url/check_job_status', () => {
  test('save_url/check_job_status answers invalid_async_job_id for an unknown job and for those of other accounts and kinds', async () => {
    const check = (async_job_id: string, token = service.token) =>
      rpc(service, 'files/save_url/check_job_status', { async_job_id }, { token });
    const unknown = refusal(409, 'invalid_async_job_id', { '.tag': 'invalid_async_job_id' });
    expect(refusalIn(await check('dbjid:none'))).toEqual(unknown);
    const batch = await rpc(service, 'files/delete_batch', { entries: [] });
    expect(refusalIn(await check((batch.json as { async_job_id: string }).async_job_id))).toEqual(unknown);
    answer = says('text');
    const launched = await save(host.url, '/mine');
    const { async_job_id } = launched.json as { async_job_id: string };
    expect(refusalIn(await check(async_job_id, await otherToken(service)))).toEqual(unknown);
    expect(await ended(launched)).toMatchObject({ '.tag': 'complete' });
  });
});

describe('save_url of a file that is too large', () => {
  const limitBytes = 1_000_000;
  /** Sends bytes until the connection is closed. */
  const endless = (_request: IncomingMessage, response: ServerResponse) => {
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    };
    response.on('drain', more);
    more();
  };

  test('save_url of an endless file fails with insufficient_space and closes the connection', async () => {
    const token = await otherToken(service, limitBytes);
    let closed = false;
    answer = (request, response) => {
      response.on('close', () => {
        closed = true;
      });
      endless(request, response);
    };
    expect(await ended(await save(host.url, '/endless', token), token)).toEqual(NO_SPACE);
    await eventually(() => expect(closed).toBe(true));
    const usage = await rpc(service, 'users/get_space_usage', null, { token });
    expect(usage.json).toMatchObject({ used: 0 });
  });

  test('save_url of a file whose Content-Length is too large fails without reading it', async () => {
    const token = await otherToken(service, limitBytes);
    answer = (_request, response) => {
      // The body is never sent, so that reading it would hang.
      response.writeHead(200, { 'content-length': String(limitBytes + 1) }).flushHeaders();
    };
    expect(await ended(await save(host.url, '/long', token), token)).toEqual(NO_SPACE);
  });
});

describe('save_url beside other commits', () => {
  test('save_url waits for its commit where an upload gets 429', async () => {
    // Commits of clients are refused instead of waiting.
    const own = await started({ webFiles: { allowedNetworks: LOOPBACK }, commitWaitMs: -1 });
    answer = says('text');
    const refused = await upload(own, 'files/upload', { path: '/theirs' }, { body: 'text' });
    expect(refused.status).toBe(429);
    const launched = await launchSave(own, host.url, '/patient');
    expect(await endOfSave(own, launched)).toMatchObject({ '.tag': 'complete', size: 4 });
    expect((await download(own, '/patient')).text).toBe('text');
  });
});

// Time stands still, so that no download ends because its host does not answer.
describe('parallel downloads of save_url', () => {
  test('save_url runs four downloads of an account at once, beside its batches, and the service closes during them', async () => {
    const own = await started({ webFiles: { allowedNetworks: LOOPBACK }, clock: new ManualClock() });
    const waiting: ServerResponse[] = [];
    answer = (_request, response) => void waiting.push(response);
    for (let number = 0; number < 5; number++) await launchSave(own, host.url, `/${number}`);
    await eventually(() => expect(waiting).toHaveLength(4));
    expect(await finished(own, 'delete_batch', { entries: [] })).toEqual([]);
    expect(waiting).toHaveLength(4);
    waiting[0]?.end('done');
    await eventually(() => expect(waiting).toHaveLength(5));
  });

  test('save_url answers 429 to an account with 100 jobs, and takes one of another account', async () => {
    const own = await started({ webFiles: { allowedNetworks: LOOPBACK }, clock: new ManualClock() });
    answer = () => undefined;
    for (let number = 0; number < 100; number++)
      expect((await launchSave(own, host.url, `/${number}`)).status).toBe(200);
    const refused = await launchSave(own, host.url, '/one-more');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    const token = await otherToken(own);
    expect((await launchSave(own, host.url, '/another', token)).status).toBe(200);
  });
});

/** Answers with the start of a body and breaks the connection. */
function cut(headers: Record<string, string>): RequestListener {
  return (_request, response) => {
    response.writeHead(200, headers);
    response.write('a beginning', () => response.destroy());
  };
}

/** Returns an access token of a new account. */
async function otherToken({ service: running }: TestService, limitBytes?: number): Promise<string> {
  const email = `${Math.random()}@example.org`;
  const account = await running.addAccount({
    email,
    givenName: 'O',
    surname: 'T',
    mayDeletePermanently: false,
    ...(limitBytes !== undefined && { limitBytes }),
  });
  return await running.grant({ accountId: account.id, scopes: SCOPES });
}
