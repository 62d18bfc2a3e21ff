import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { connectRaw } from '../../support/raw-http.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc, send } from '../../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;

beforeAll(async () => {
  service = await startTestService({ clock });
});
afterAll(() => service.close());

async function linkTo(path: string, settings?: object): Promise<string> {
  const argument = settings ? { path, settings } : { path };
  const answered = await rpc(service, 'sharing/create_shared_link_with_settings', argument);
  return (answered.json as { url: string }).url;
}

const raw = (url: string) => url.replace('dl=0', 'raw=1');
const get = (url: string, headers: Record<string, string> = {}) => send(url, { headers });

describe('the page of a file link', () => {
  test('the page of a file link shows the name, the size and links to the bytes', async () => {
    await put(service, '/page/Report 1.txt', 'x'.repeat(1500));
    const answered = await get(await linkTo('/page/Report 1.txt'));
    expect(answered.status).toBe(200);
    expect(answered.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answered.text).toContain('<title>Report 1.txt</title>');
    expect(answered.text).toContain('1.5 kB');
    const links = [...answered.text.matchAll(/href="([^"]*(?:dl|raw)=1)"/g)];
    expect(links.length).toBeGreaterThan(0);
    for (const [, href = ''] of links) {
      const address = new URL(href.replaceAll('&amp;', '&'), await urlOf('/page/Report 1.txt'));
      expect((await get(address.href)).text).toBe('x'.repeat(1500));
    }
  });

  test('the page of a file link runs no script, refuses frames and sends no referrer', async () => {
    await put(service, '/page/quiet', 'text');
    const { headers, text } = await get(await linkTo('/page/quiet'));
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('script-src');
    expect(policy).not.toContain('unsafe-inline');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(text).not.toContain('<script');
  });

  test('the page of a file link has the style sheet whose hash its policy names', async () => {
    await put(service, '/page/styled', 'text');
    const { headers, text } = await get(await linkTo('/page/styled'));
    const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')).toContain(`style-src 'sha256-${hash}'`);
  });

  test('the pages of links escape markup in names', async () => {
    const name = `"><img src=x onerror=alert(1)>'&<!--.png`;
    await put(service, `/markup/${name}`, 'text');
    const { text } = await get(await linkTo(`/markup/${name}`));
    expect(text).not.toContain('<img src=x');
    expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;');
    expect(text).toContain('&quot;&gt;&lt;img');
    const folder = await get(await linkTo('/markup'));
    expect(folder.text).not.toContain('<img src=x');
    expect(folder.text).toContain('&lt;img src=x');
  });

  test.each([
    ['picture.PNG', '<img'],
    ['song.mp3', '<audio'],
    ['film.mp4', '<video'],
  ])('the page of a link to %s shows it in the page', async (name, element) => {
    await put(service, `/shown/${name}`, 'text');
    expect((await get(await linkTo(`/shown/${name}`))).text).toContain(element);
  });
});

describe('the page of a folder link', () => {
  test('the page of a folder link lists the folder and links to its subfolders and back', async () => {
    await put(service, '/tree/a file', 'text');
    await put(service, '/tree/sub #1/be?low', 'below');
    const top = await get(await linkTo('/tree'));
    expect(top.text).toContain('a file');
    const hrefOf = (text: string, name: string) => {
      const link = new RegExp(`href="([^"]*)">${name.replace('?', '\\?')}<`).exec(text)?.[1] ?? '';
      return new URL(link.replaceAll('&amp;', '&'), service.url).href;
    };
    const sub = await get(hrefOf(top.text, 'sub #1'));
    expect(sub.text).toContain('<h1>sub #1</h1>');
    const below = hrefOf(sub.text, 'be?low');
    expect((await get(below)).text).toContain('<h1>be?low</h1>');
    expect((await get(raw(below))).text).toBe('below');
    expect((await get(hrefOf(sub.text, 'tree'))).text).toContain('<h1>tree</h1>');
  });

  test('a folder link answers 404 for every path outside the folder', async () => {
    await put(service, '/walled/in/x', 'text');
    await put(service, '/walled/secret', 'text');
    const { port, pathname, search } = new URL(await linkTo('/walled/in'));
    // Sent raw, because fetch resolves dots before it sends.
    const statusOf = async (step: string) => {
      const head = `GET ${pathname}/${step}${search} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
      return (await connectRaw(Number(port), head).closed()).slice(9, 12);
    };
    for (const step of ['..%2Fsecret', '../secret', '..', '%2Fwalled%2Fsecret', '', 'x%00', '%zz', 'no'])
      expect([step, await statusOf(step)]).toEqual([step, '404']);
    expect(await statusOf('x')).toBe('200');
  });

  test('the page of an empty folder says so, and raw=1 answers 400', async () => {
    await rpc(service, 'files/create_folder_v2', { path: '/hollow' });
    const url = await linkTo('/hollow');
    expect((await get(url)).text).toContain('This folder is empty.');
    expect((await get(raw(url))).status).toBe(400);
    expect((await get(raw(url))).text).toContain('A folder is not one file');
  });
});

describe('the bytes behind a link', () => {
  test('dl=1 of a link answers the bytes as an attachment with the file’s name', async () => {
    const { rev } = await put(service, '/bytes/Grüße "1".html', '<script>1</script>');
    const url = (await linkTo('/bytes/Grüße "1".html')).replace('dl=0', 'dl=1');
    const answered = await get(url);
    expect([answered.status, answered.text]).toEqual([200, '<script>1</script>']);
    expect(answered.headers.get('content-type')).toBe('application/octet-stream');
    expect(answered.headers.get('content-disposition')).toBe(
      `attachment; filename="Gr__e _1_.html"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%221%22.html`,
    );
    expect(answered.headers.get('etag')).toBe(`"${rev}"`);
    expect(answered.headers.get('last-modified')).toMatch(/ GMT$/);
  });

  test.each([
    ['page.html', 'text/plain; charset=utf-8'],
    ['page.XHTML', 'text/plain; charset=utf-8'],
    ['script.js', 'text/plain; charset=utf-8'],
    ['drawing.svg', 'image/svg+xml'],
    ['photo.jpg', 'image/jpeg'],
    ['noending', 'application/octet-stream'],
    ['pdf', 'application/octet-stream'],
    ['odd.constructor', 'application/octet-stream'],
  ])('raw=1 of %s is shown as %s, in a sandbox without scripts', async (name, type) => {
    await put(service, `/raw/${name}`, '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>');
    const { headers } = await get(raw(await linkTo(`/raw/${name}`)));
    expect(headers.get('content-type')).toBe(type);
    expect(headers.get('content-disposition')).toMatch(/^inline;/);
    expect(headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('raw=1 of a link answers ranges, and the whole file if If-Range does not match', async () => {
    const { rev } = await put(service, '/ranges', 'some text');
    const url = raw(await linkTo('/ranges'));
    const part = await get(url, { range: 'bytes=5-' });
    expect([part.status, part.text, part.headers.get('content-range')]).toEqual([206, 'text', 'bytes 5-8/9']);
    expect((await get(url, { range: 'bytes=5-', 'if-range': `"${rev}"` })).status).toBe(206);
    expect((await get(url, { range: 'bytes=5-', 'if-range': '"other"' })).text).toBe('some text');
    const outside = await get(url, { range: 'bytes=9-' });
    expect([outside.status, outside.headers.get('content-range')]).toEqual([416, 'bytes */9']);
    expect((await get(url, { 'if-none-match': `"${rev}"` })).status).toBe(304);
  });

  test('HEAD with raw=1 of a link answers the length', async () => {
    await put(service, '/headed', 'text');
    const response = await fetch(raw(await linkTo('/headed')), { method: 'HEAD' });
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([
      200,
      '4',
      '',
    ]);
  });

  test('a link without downloads answers dl=1 with 403, and its page has no dl=1', async () => {
    await put(service, '/looked-at', 'text');
    const url = await linkTo('/looked-at', { allow_download: false });
    expect((await get(url.replace('dl=0', 'dl=1'))).status).toBe(403);
    expect((await get(url)).text).not.toContain('dl=1');
  });
});

describe('thumbnails of links', () => {
  const png = (width: number) =>
    sharp({ create: { width, height: 600, channels: 3, background: '#48a' } })
      .png()
      .toBuffer();
  const pictures = (text: string) =>
    [...text.matchAll(/<img src="([^"]*)"/g)].map(
      ([, url = '']) => new URL(url.replaceAll('&amp;', '&'), service.url).href,
    );

  test('the page of a folder link shows thumbnails of its images', async () => {
    await put(service, '/album/wide.png', await png(1200));
    await put(service, '/album/notes.txt', 'text');
    await put(service, '/album/in/deep #1.png', await png(600));
    const url = await linkTo('/album');
    const [picture = '', ...more] = pictures((await get(url)).text);
    expect(more).toEqual([]);
    const response = await fetch(picture);
    const { format, width, height } = await sharp(Buffer.from(await response.arrayBuffer())).metadata();
    expect([response.headers.get('content-type'), format, width, height]).toEqual([
      'image/webp',
      'webp',
      320,
      160,
    ]);
    const etag = response.headers.get('etag') ?? '';
    expect((await get(picture, { 'if-none-match': etag })).status).toBe(304);
    const [below = ''] = pictures((await get(url.replace('/h?', '/h/in?'))).text);
    expect((await fetch(below)).status).toBe(200);
  });

  test('all 64 images of a folder’s page that are requested at once get their thumbnails', async () => {
    const image = await png(600);
    for (let index = 0; index < 64; index++) await put(service, `/many/${index}.png`, image);
    const { text } = await get(await linkTo('/many'));
    const asked = pictures(text).map(async (picture) => (await fetch(picture)).status);
    expect(await Promise.all(asked)).toEqual(Array(64).fill(200));
  });

  test('a thumbnail of a file that is no image answers 404', async () => {
    await put(service, '/fake/fake.png', 'text');
    const [picture = ''] = pictures((await get(await linkTo('/fake'))).text);
    const answered = await get(picture);
    expect([answered.status, answered.text]).toEqual([
      404,
      'There is no thumbnail of this file: unsupported_image.',
    ]);
  });

  test('a thumbnail of a link with a password answers 403 without it', async () => {
    await put(service, '/hidden.png', await png(10));
    const url = await linkTo('/hidden.png', { requested_visibility: 'password', link_password: 'pass' });
    expect((await get(url.replace('dl=0', 'thumb=1'))).status).toBe(403);
  });
});

describe('links that do not open', () => {
  test('a link with a wrong or missing key answers 404 with a page and a request id', async () => {
    await put(service, '/keyed', 'text');
    const url = await linkTo('/keyed');
    for (const wrong of [
      url.replace(/rlkey=./, 'rlkey=x'),
      url.replace(/rlkey=[^&]+/, 'rlkey='),
      url.replace(/\?.*/, ''),
      url.replace(/fi\/./, 'fi/x'),
      `${service.url}/scl/`,
      `${service.url}/scl/fi/%zz/x?rlkey=1`,
    ]) {
      const answered = await get(wrong);
      expect([answered.status, answered.headers.get('content-type')]).toEqual([
        404,
        'text/html; charset=utf-8',
      ]);
      expect(answered.headers.get('x-dropbox-request-id')).toMatch(/^[0-9a-f]{32}$/);
    }
  });

  test('a link to a deleted file answers 404', async () => {
    await put(service, '/doomed', 'text');
    const url = await linkTo('/doomed');
    await rpc(service, 'files/delete_v2', { path: '/doomed' });
    expect((await get(url)).status).toBe(404);
    expect((await get(raw(url))).status).toBe(404);
  });

  test('a link with audience no_one answers 403', async () => {
    await put(service, '/closed', 'text');
    const url = await linkTo('/closed', { audience: 'no_one' });
    expect((await get(url)).status).toBe(403);
    expect((await get(raw(url))).status).toBe(403);
  });

  test('DELETE of a link answers 405 with Allow', async () => {
    await put(service, '/method', 'text');
    const response = await fetch(await linkTo('/method'), { method: 'DELETE' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
  });
});

describe('passwords of links', () => {
  const settings = { requested_visibility: 'password', link_password: 'open <sesame>' };
  const sendPassword = (url: string, password: string) =>
    send(url, { method: 'POST', body: new URLSearchParams({ password }) });

  test('a link with a password asks for it, and opens page and bytes with the cookie that it sets', async () => {
    await put(service, '/guarded', 'text');
    const url = await linkTo('/guarded', settings);
    for (const closed of [url, raw(url)]) {
      const answered = await get(closed);
      expect(answered.status).toBe(403);
      expect(answered.text).toContain('<form method="post">');
    }
    expect((await sendPassword(url, 'open')).status).toBe(403);
    expect((await sendPassword(url, '')).status).toBe(400);
    const answered = await sendPassword(raw(url), 'open <sesame>');
    expect(answered.status).toBe(303);
    expect(new URL(answered.headers.get('location') ?? '', raw(url)).href).toBe(raw(url));
    const setCookie = answered.headers.get('set-cookie') ?? '';
    expect(setCookie).toMatch(/; HttpOnly; SameSite=Lax$/);
    const cookie = setCookie.split(';')[0] ?? '';
    expect((await get(raw(url), { cookie })).text).toBe('text');
    expect((await get(raw(url), { cookie: `${cookie}x` })).status).toBe(403);
  });

  /** Shortest waits before each wrong guess that is still compared, in ms. */
  const WAITS_MS = [0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000];

  test('a link refuses a password for longer after each wrong one', async () => {
    await put(service, '/guessed', 'text');
    const url = await linkTo('/guessed', settings);
    for (const [guess, waitMs] of WAITS_MS.entries()) {
      await clock.advance(waitMs);
      expect((await sendPassword(url, `guess ${guess}`)).status).toBe(403);
    }
    const answered = await sendPassword(url, 'open <sesame>');
    expect([answered.status, answered.headers.get('retry-after')]).toEqual([429, '16']);
    await clock.advance(16_000);
    expect((await sendPassword(url, 'open <sesame>')).status).toBe(303);
  });

  test('wrong passwords by calls and on the page count together, and a client that knows the password is let in', async () => {
    await clock.advance(60_000);
    await put(service, '/tried', 'text');
    const url = await linkTo('/tried', settings);
    const basic = `Basic ${Buffer.from(`${service.appKey}:${service.appSecret}`).toString('base64')}`;
    const call = (password: string) =>
      rpc(
        service,
        'sharing/get_shared_link_metadata',
        { url, link_password: password },
        { token: null, headers: { authorization: basic } },
      );
    expect((await call('open <sesame>')).status).toBe(200);
    for (const [guess, waitMs] of WAITS_MS.entries()) {
      await clock.advance(waitMs);
      expect((await call(`guess ${guess}`)).status).toBe(409);
    }
    const over = await call('guess');
    expect([over.status, over.headers.get('retry-after')]).toEqual([429, '16']);
    expect((await sendPassword(url, 'guess')).status).toBe(429);
    expect((await call('open <sesame>')).status).toBe(200);
    const changed = { url, settings: { link_password: 'another' } };
    expect((await rpc(service, 'sharing/modify_shared_link_settings', changed)).status).toBe(200);
    expect((await call('open <sesame>')).status).toBe(429);
    await clock.advance(16_000);
    expect((await call('another')).status).toBe(200);
    expect((await call('open <sesame>')).status).toBe(409);
  });
});

async function urlOf(path: string): Promise<string> {
  const answered = await rpc(service, 'sharing/list_shared_links', { path, direct_only: true });
  return (answered.json as { links: { url: string }[] }).links[0]?.url ?? '';
}
