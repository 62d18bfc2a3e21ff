import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Follower, linesOf, parseReport, sendReport, shownTree } from '../support/follower.ts';
import {
  GatewayClient,
  type GatewayOptions,
  startTestGateway,
  type TestGateway,
} from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

// REPORT sync-collection (RFC 6578), over HTTP to gateway and service.

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;
let directory: string;

async function start(options: Partial<GatewayOptions> = {}): Promise<void> {
  gateway = await startTestGateway({ service, directory, ...options });
  client = new GatewayClient(gateway.url);
}

async function stop(): Promise<void> {
  client.close();
  await gateway.close();
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-sync-'));
  service = await startTestService();
});
afterEach(async () => {
  await stop();
  await service.close();
  await rm(directory, { recursive: true });
});

async function send(method: string, path: string, headers: Record<string, string> = {}, body?: string) {
  const answer = await client.send(method, path, {
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });
  return { ...answer, text: answer.body.toString() };
}

async function change(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<void> {
  const { status, text } = await send(method, path, headers, body);
  if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${text}`);
}

const report = async (folder: string, token = '', options = {}) =>
  parseReport(await sendReport(client, folder, token, options));

const states = (rows: readonly (readonly [string, string])[]) =>
  rows.map(([href, state]) => [href, state.startsWith('"') ? 'file' : state]);

/** What a report for the first level must contain besides `DAV:prop`. */
const ASKED = '<D:sync-token/><D:sync-level>1</D:sync-level>';

const limitOf = (rows: string) => `<D:limit><D:nresults>${rows}</D:nresults></D:limit>`;

function reportBody(parts: string): string {
  return `<D:sync-collection xmlns:D="DAV:">${parts}</D:sync-collection>`;
}

describe('a report on a small tree', () => {
  beforeEach(async () => {
    await start();
    await change('MKCOL', '/docs');
    await change('MKCOL', '/docs/sub');
    await change('PUT', '/docs/a.txt', {}, 'a');
    await change('PUT', '/docs/sub/b.txt', {}, 'b');
    await change('PUT', '/elsewhere.txt', {}, 'e');
  });

  test('the initial report lists every member with the properties that it names, and ends with a token that is a URI', async () => {
    const { rows, token, truncatedAt } = await report('/docs');
    expect(states(rows)).toEqual([
      ['/docs/a.txt', 'file'],
      ['/docs/sub/', 'folder'],
      ['/docs/sub/b.txt', 'file'],
    ]);
    expect(truncatedAt).toBeUndefined();
    expect(new URL(token).protocol).toBe('https:');
  });

  test('level 1 lists only the children, and reports a change below a child folder to nobody', async () => {
    const { rows, token } = await report('/docs/', '', { level: '1' });
    expect(states(rows)).toEqual([
      ['/docs/a.txt', 'file'],
      ['/docs/sub/', 'folder'],
    ]);
    await change('PUT', '/docs/sub/c.txt', {}, 'c');
    await change('PUT', '/docs/c.txt', {}, 'c');
    expect(states((await report('/docs', token, { level: '1' })).rows)).toEqual([['/docs/c.txt', 'file']]);
  });

  test('a report with a token has exactly what changed since then: new, changed, moved and removed members', async () => {
    const { token } = await report('/docs');
    await change('PUT', '/docs/a.txt', {}, 'changed');
    await change('PUT', '/docs/new.txt', {}, 'new');
    await change('MOVE', '/docs/sub', { destination: '/docs/moved' });
    await change('PUT', '/elsewhere.txt', {}, 'changed');
    const next = await report('/docs', token);
    expect(states(next.rows)).toEqual([
      ['/docs/a.txt', 'file'],
      ['/docs/moved/', 'folder'],
      ['/docs/moved/b.txt', 'file'],
      ['/docs/new.txt', 'file'],
      ['/docs/sub', 'gone'],
    ]);
    await change('DELETE', '/docs/new.txt');
    const last = await report('/docs', next.token);
    expect(last.rows).toEqual([['/docs/new.txt', 'gone']]);
    expect((await report('/docs', last.token)).rows).toEqual([]);
  });

  test('a change made elsewhere at the service is in the next report, however short before it was made', async () => {
    let { token } = await report('/docs');
    for (let round = 0; round < 5; round++) {
      await put(service, `/Docs/theirs ${round}.txt`, `${round}`);
      const next = await report('/docs', token);
      expect(states(next.rows)).toEqual([[`/docs/theirs%20${round}.txt`, 'file']]);
      token = next.token;
    }
  });

  test('a limit cuts the report with a row of status 507 for the folder, and the token continues it', async () => {
    const first = await report('/docs', '', { limit: 2 });
    expect(states(first.rows)).toEqual([
      ['/docs/a.txt', 'file'],
      ['/docs/sub/', 'folder'],
    ]);
    expect(first.truncatedAt).toBe('/docs/');
    await change('DELETE', '/docs/a.txt');
    const second = await report('/docs', first.token, { limit: 2 });
    expect(states(second.rows)).toEqual([['/docs/sub/b.txt', 'file']]);
    expect(second.truncatedAt).toBeUndefined();
    expect((await report('/docs', second.token)).rows).toEqual([['/docs/a.txt', 'gone']]);
  });

  test('a limit cuts a report of changes too, and what changes between its pages is not lost', async () => {
    const { token } = await report('/docs');
    for (const name of ['1', '2', '3']) await change('PUT', `/docs/${name}`, {}, name);
    const first = await report('/docs', token, { limit: 2 });
    expect(states(first.rows)).toEqual([
      ['/docs/1', 'file'],
      ['/docs/2', 'file'],
    ]);
    await change('PUT', '/docs/1', {}, 'again');
    await change('DELETE', '/docs/3');
    const second = await report('/docs', first.token, { limit: 2 });
    expect(second.rows).toEqual([['/docs/3', 'gone']]);
    const third = await report('/docs', second.token, { limit: 2 });
    expect(states(third.rows)).toEqual([
      ['/docs/1', 'file'],
      ['/docs/3', 'gone'],
    ]);
  });

  test('a folder that was deleted and made again is reported as removed first, and with its new members in the next page', async () => {
    const follower = new Follower(client, '/docs');
    await follower.follow();
    await change('DELETE', '/docs/sub');
    await change('MKCOL', '/docs/sub');
    await change('PUT', '/docs/sub/new.txt', {}, 'new');
    const first = await report('/docs', follower.token);
    expect(first.rows).toEqual([['/docs/sub', 'gone']]);
    expect(first.truncatedAt).toBe('/docs/');
    expect(states(await follower.follow())).toEqual([
      ['/docs/sub', 'gone'],
      ['/docs/sub/', 'folder'],
      ['/docs/sub/new.txt', 'file'],
    ]);
    expect(linesOf(follower.tree)).toEqual(linesOf(await shownTree(client, '/docs')));
  });

  test('a token of another folder, another level, a deleted folder, or none of davgate answers 403 valid-sync-token', async () => {
    const { token } = await report('/docs');
    const refused = async (folder: string, sent: string, options = {}) => {
      const { status, body } = await sendReport(client, folder, sent, options);
      expect([status, body.toString()]).toEqual([403, expect.stringContaining('<D:valid-sync-token/>')]);
    };
    await refused('/docs/sub', token);
    await refused('/', token);
    await refused('/docs', token, { level: '1' });
    await refused('/docs', `${token}x`.replace('xx', 'y').slice(0, -20));
    await refused('/docs', 'https://davgate.dev/ns/sync/AAAA');
    await refused('/docs', 'http://elsewhere.example/1234');
    await change('DELETE', '/docs');
    await change('MKCOL', '/docs');
    await refused('/docs', token);
  });

  test('a token is valid after a restart of davgate, with all that changed meanwhile', async () => {
    await change('PUT', '/docs/._a.txt', {}, 'fork');
    const { token } = await report('/docs');
    await change('DELETE', '/docs/._a.txt');
    await stop();
    await put(service, '/docs/meanwhile.txt', 'm');
    await start();
    expect(states((await report('/docs', token)).rows)).toEqual([
      ['/docs/._a.txt', 'gone'],
      ['/docs/meanwhile.txt', 'file'],
    ]);
  });

  test('a cursor that the service has reset answers 403 valid-sync-token, so that the client starts again', async () => {
    const { token } = await report('/docs');
    await stop();
    await service.close();
    // An account at another service does not know the cursor.
    service = await startTestService();
    await start();
    await change('MKCOL', '/docs');
    const { status, body } = await sendReport(client, '/', token);
    expect([status, body.toString()]).toEqual([403, expect.stringContaining('<D:valid-sync-token/>')]);
  });

  test('local files and empty files that wait for their body are reported like all others, and when they disappear', async () => {
    const { token } = await report('/docs');
    await change('PUT', '/docs/.DS_Store', {}, 'view');
    await change(
      'PUT',
      '/docs/empty.txt',
      { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/19.0.0 (x86_64)' },
      '',
    );
    const next = await report('/docs', token);
    expect(states(next.rows)).toEqual(
      [
        ['/docs/.ds_store', 'file'],
        ['/docs/empty.txt', 'file'],
      ].map(([href, state]) => [href === '/docs/.ds_store' ? '/docs/.DS_Store' : href, state]),
    );
    expect((await report('/docs', next.token)).rows).toEqual([]);
    await change('PUT', '/docs/.DS_Store', {}, 'changed');
    await change('DELETE', '/docs/empty.txt');
    expect(states((await report('/docs', next.token)).rows)).toEqual([
      ['/docs/.DS_Store', 'file'],
      ['/docs/empty.txt', 'gone'],
    ]);
  });

  test('a member that is deleted from a folder in the place of an empty file is reported, also when the empty file goes', async () => {
    const finder = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/19.0.0 (x86_64)' };
    await change('PUT', '/docs/late', finder, '');
    await put(service, '/docs/late/deleted.txt', 'd');
    await put(service, '/docs/late/kept.txt', 'k');
    const follower = new Follower(client, '/docs');
    await follower.follow();
    expect(linesOf(follower.tree)).toEqual(linesOf(await shownTree(client, '/docs')));
    // At the end davgate drops the empty file, because the service has a folder there.
    await stop();
    await rpc(service, 'files/delete_v2', { path: '/docs/late/deleted.txt' });
    await start();
    const resumed = new Follower(client, '/docs');
    resumed.token = follower.token;
    for (const [href, state] of follower.tree) resumed.tree.set(href, state);
    await resumed.follow();
    expect(linesOf(resumed.tree)).toEqual(linesOf(await shownTree(client, '/docs')));
  });

  test('the report shows dead properties, locks and missing properties as PROPFIND does', async () => {
    const set =
      '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><c xmlns="urn:x">value</c></D:prop></D:set></D:propertyupdate>';
    await change('PROPPATCH', '/docs/a.txt', {}, set);
    const lock =
      '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
    await change('LOCK', '/docs/a.txt', { depth: '0', timeout: 'Second-3600' }, lock);
    const prop =
      '<D:prop><c xmlns="urn:x"/><D:lockdiscovery/><D:getcontentlength/><D:getlastmodified/><D:displayname/></D:prop>';
    const reported = await send(
      'REPORT',
      '/docs',
      { depth: '0' },
      reportBody(`<D:sync-token/><D:sync-level>1</D:sync-level>${prop}`),
    );
    const shown = await send(
      'PROPFIND',
      '/docs/',
      { depth: '1' },
      `<D:propfind xmlns:D="DAV:">${prop}</D:propfind>`,
    );
    const rowsIn = (text: string) =>
      [...text.matchAll(/<D:response>.*?<\/D:response>/gs)].map(([row]) =>
        row.replace(/Second-\d+/g, 'Second'),
      );
    expect(rowsIn(reported.text)).toEqual(expect.arrayContaining(rowsIn(shown.text).slice(1)));
    expect(reported.text).toContain('>value</c>');
    expect(reported.text).toContain('<D:locktoken>');
  });

  test('sync-token and supported-report-set are properties of folders that must be named, and the token of one begins a sync', async () => {
    const ask = (path: string, names: string) =>
      send(
        'PROPFIND',
        path,
        { depth: '0' },
        `<D:propfind xmlns:D="DAV:"><D:prop>${names}</D:prop></D:propfind>`,
      );
    const { text } = await ask('/docs', '<D:sync-token/><D:supported-report-set/>');
    expect(text).toContain(
      '<D:supported-report><D:report><D:sync-collection/></D:report></D:supported-report>',
    );
    const [, token = ''] = /<D:sync-token>(.*)<\/D:sync-token>/.exec(text) ?? [];
    await change('PUT', '/docs/later.txt', {}, 'l');
    for (const level of ['1', 'infinite'])
      expect(states((await report('/docs', token, { level })).rows)).toEqual([['/docs/later.txt', 'file']]);
    expect((await ask('/docs/a.txt', '<D:sync-token/>')).text).toContain('404 Not Found');
    for (const body of [
      undefined,
      '<D:propfind xmlns:D="DAV:"><D:allprop/></D:propfind>',
      '<D:propfind xmlns:D="DAV:"><D:propname/></D:propfind>',
    ])
      expect((await send('PROPFIND', '/docs', { depth: '0' }, body)).text).not.toMatch(
        /sync-token|report-set/,
      );
    const withMembers = await send(
      'PROPFIND',
      '/docs',
      { depth: '1' },
      '<D:propfind xmlns:D="DAV:"><D:prop><D:sync-token/></D:prop></D:propfind>',
    );
    expect(withMembers.text).toContain('sync-token is available with Depth 0');
  });

  test.each([
    ['1', '<D:sync-level>1</D:sync-level>', '1'],
    ['1', '', '1'],
    ['infinity', '', 'infinite'],
  ] as const)(
    'a report with depth %s and "%s", of a client of earlier drafts, has the rows of level %s',
    async (depth, asked, level) => {
      const body = reportBody(`<D:sync-token/>${asked}<D:prop><D:resourcetype/><D:getetag/></D:prop>`);
      const answer = await client.send('REPORT', '/docs', { headers: { depth }, body: Buffer.from(body) });
      expect((await parseReport(answer)).rows).toEqual((await report('/docs', '', { level })).rows);
    },
  );

  test.each([
    ['a contradicting depth', { depth: 'infinity' }, `${ASKED}<D:prop/>`, 400, 'contradicts'],
    ['no level', {}, '<D:sync-token/><D:prop/>', 400, ''],
    ['an unknown level', {}, '<D:sync-token/><D:sync-level>2</D:sync-level><D:prop/>', 400, ''],
    ['no token element', {}, '<D:sync-level>1</D:sync-level><D:prop/>', 400, ''],
    ['no prop', {}, ASKED, 400, ''],
    ['a limit that is no number', {}, `${ASKED}${limitOf('x')}<D:prop/>`, 400, ''],
    ['a limit of 0', {}, `${ASKED}${limitOf('0')}<D:prop/>`, 507, 'number-of-matches-within-limits'],
  ])('a report with %s is refused', async (_, headers, parts, status, precondition) => {
    const answer = await send('REPORT', '/docs', headers, reportBody(parts));
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(precondition);
  });

  test('another report, and one on a file, answers 403 supported-report; one on nothing 404; one without a body 400', async () => {
    const initial = reportBody(`${ASKED}<D:prop/>`);
    const other = await send('REPORT', '/docs', {}, '<D:expand-property xmlns:D="DAV:"/>');
    expect([other.status, other.text]).toEqual([403, expect.stringContaining('<D:supported-report/>')]);
    const onFile = await send('REPORT', '/docs/a.txt', {}, initial);
    expect([onFile.status, onFile.text]).toEqual([403, expect.stringContaining('<D:supported-report/>')]);
    expect((await send('REPORT', '/nothing', {}, initial)).status).toBe(404);
    expect((await send('REPORT', '/docs')).status).toBe(400);
  });
});

test('with write-back, a file is reported when it is acknowledged, and its entity tag stays the same when it lands', async () => {
  await start({ writeBack: true });
  const follower = new Follower(client, '/');
  await follower.follow();
  await change('PUT', '/a.txt', {}, 'one');
  await follower.follow();
  const pending = linesOf(follower.tree);
  expect(pending).toHaveLength(1);
  await gateway.landed();
  await follower.follow();
  expect(linesOf(follower.tree)).toEqual(pending);
  await change('PUT', '/a.txt', {}, 'two');
  await follower.follow();
  expect(linesOf(follower.tree)).toEqual(linesOf(await shownTree(client, '/')));
  expect(linesOf(follower.tree)).not.toEqual(pending);
  await change('DELETE', '/a.txt');
  await follower.follow();
  expect(linesOf(follower.tree)).toEqual([]);
});
