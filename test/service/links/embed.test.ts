import { createHash } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc, send, sharedLink } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const embedded = (link: string, options: Record<string, string> = {}) =>
  send(`${service.url}/embed?${new URLSearchParams({ link, ...options })}`, {});

test('/embed.js answers a script that pages of every origin may load', async () => {
  const { status, headers, text } = await send(`${service.url}/embed.js`, {});
  expect([status, headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
  expect(headers.get('access-control-allow-origin')).toBe('*');
  expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin');
  expect(() => runInNewContext(`() => {${text}}`)).not.toThrow();
});

test('/embed answers a sandboxed page that any site may frame, with one script that its policy names', async () => {
  await put(service, '/framed.txt', 'text');
  const { status, headers, text } = await embedded(await sharedLink(service, '/framed.txt'));
  expect(status).toBe(200);
  const policy = headers.get('content-security-policy') ?? '';
  const script = /<script>([\s\S]*)<\/script>/.exec(text)?.[1] ?? '';
  const hash = createHash('sha256').update(script).digest('base64');
  expect(policy).toContain(`script-src 'sha256-${hash}'`);
  expect(policy).toContain('frame-ancestors *');
  expect(policy).toMatch(/^sandbox allow-scripts /);
  expect(policy).not.toMatch(/allow-same-origin|allow-top-navigation|allow-forms|unsafe/);
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(headers.get('cache-control')).toBe('no-store');
});

test('/embed shows a link with an older address of the service', async () => {
  await put(service, '/older.txt', 'the text');
  const link = (await sharedLink(service, '/older.txt')).replace(/^http:\/\/[^/]+/, 'https://older.example');
  expect((await embedded(link)).text).toContain('the text');
});

test('/embed of a link with a password answers 403 also with the cookie of the link’s own page', async () => {
  await put(service, '/guarded.txt', 'the secret');
  const settings = { requested_visibility: 'password', link_password: 'sesame' };
  const link = await sharedLink(service, '/guarded.txt', settings);
  const body = new URLSearchParams({ password: 'sesame' });
  const cookie = (await send(link, { method: 'POST', body })).headers.get('set-cookie')?.split(';')[0] ?? '';
  expect((await send(link, { headers: { cookie } })).text).toContain('the secret');
  const address = `${service.url}/embed?${new URLSearchParams({ link })}`;
  const { status, text } = await send(address, { headers: { cookie } });
  expect([status, text.includes('the secret'), text.includes('guarded')]).toEqual([403, false, false]);
});

test.each([
  ['', 404],
  ['no address', 404],
  ['https://a.example/', 404],
  ['javascript:alert(1)', 404],
])('/embed of the malformed link %j answers %i', async (link, status) => {
  const answered = await embedded(link);
  expect([answered.status, answered.text.includes('Nothing is here')]).toEqual([status, true]);
  expect(answered.headers.get('content-security-policy')).toContain('frame-ancestors *');
});

test('/embed of a file deleted from a linked folder answers 404', async () => {
  await put(service, '/gone/a.txt', 'text');
  const link = (await sharedLink(service, '/gone')).replace('/h?', '/h/a.txt?');
  expect((await embedded(link)).status).toBe(200);
  await rpc(service, 'files/delete_v2', { path: '/gone/a.txt' });
  expect((await embedded(link)).status).toBe(404);
});

test('/embed takes invalid options for the defaults', async () => {
  await put(service, '/options/a.txt', 'text');
  const link = await sharedLink(service, '/options');
  const { text } = await embedded(link, { view: '"><script>', headerSize: 'x', zoom: 'y' });
  expect(text).toContain('class="items list"');
  expect(text).toContain('<header class="normal">');
  expect(text).not.toContain('"><script>');
});

test('POST to /embed and /embed.js answers 405', async () => {
  for (const path of ['/embed', '/embed.js']) {
    const { status, headers } = await send(service.url + path, { method: 'POST' });
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  }
});
