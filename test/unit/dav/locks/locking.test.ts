import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { type DavAnswer, type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/a', 'old');
  await dav.file('/f/x', 'x');
  await dav.file('/f/sub/y', 'y');
  await dav.folder('/g');
});
afterEach(() => dav.close());

const lockInfo = (scope = 'exclusive') =>
  `<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:${scope}/></D:lockscope>` +
  '<D:locktype><D:write/></D:locktype><D:owner><D:href>mailto:ann</D:href></D:owner></D:lockinfo>';

interface LockOptions {
  readonly scope?: string;
  readonly user?: string;
  readonly headers?: Record<string, string>;
}

const lock = (target: string, { scope, user, headers }: LockOptions = {}) =>
  dav.send('LOCK', target, {
    body: lockInfo(scope),
    ...(user !== undefined && { user }),
    ...(headers && { headers }),
  });

/** Returns the lock token without its angle brackets. */
const tokenOf = (answer: DavAnswer) => String(answer.headers['lock-token']).replace(/[<>]/g, '');
const holding = (...tokens: string[]) => ({ If: tokens.map((token) => `(<${token}>)`).join(' ') });
const unlock = (target: string, token: string, user = 'ann') =>
  dav.send('UNLOCK', target, { headers: { 'Lock-Token': `<${token}>` }, user });

describe('LOCK', () => {
  test('LOCK answers with the token in the header and the body', async () => {
    const answer = await lock('/a', { headers: { Depth: '0', Timeout: 'Second-600' } });
    const token = tokenOf(answer);
    expect(answer.status).toBe(200);
    expect(token).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
    expect(answer.headers['content-type']).toBe('application/xml; charset="utf-8"');
    expect(answer.text).toBe(
      '<?xml version="1.0" encoding="utf-8"?>\n<D:prop xmlns:D="DAV:"><D:lockdiscovery><D:activelock>' +
        '<D:locktype><D:write/></D:locktype><D:lockscope><D:exclusive/></D:lockscope><D:depth>0</D:depth>' +
        '<D:owner><D:href xmlns:D="DAV:">mailto:ann</D:href></D:owner><D:timeout>Second-600</D:timeout>' +
        `<D:locktoken><D:href>${token}</D:href></D:locktoken>` +
        '<D:lockroot><D:href>/a</D:href></D:lockroot></D:activelock></D:lockdiscovery></D:prop>',
    );
  });

  test('LOCK of an unmapped URL creates a placeholder that lasts as long as the lock', async () => {
    const answer = await lock('/new', { headers: { Timeout: 'Second-120' } });
    expect(answer.status).toBe(201);
    expect(answer.text).toContain(tokenOf(answer));
    expect(dav.content('/new')).toBe('');
    expect(dav.files.isHeld(path('/new'))).toBe(true);
    expect(dav.files.calls.at(-1)?.options).toEqual({ holdMs: 120_000 });
    expect((await unlock('/new', tokenOf(answer))).status).toBe(204);
    expect(dav.files.isHeld(path('/new'))).toBe(false);
    expect(dav.content('/new')).toBe('');
  });

  test('LOCK leaves no lock when it cannot create the file', async () => {
    dav.files.failNext('keepPlaceholder', new FileError('bad-name', 'the service does not take this name'));
    expect((await lock('/new')).status).toBe(403);
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
    expect((await lock('/none/new')).status).toBe(409);
    expect((await lock('/new/')).status).toBe(409);
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
  });

  test.each([
    ['/a', { 'If-None-Match': '*' }, 412],
    ['/new', { 'If-None-Match': '*' }, 201],
    ['/new', { 'If-None-Match': 'JoplinIgnore-1' }, 201],
    ['/a', { 'If-Match': '"other"' }, 412],
    ['/a', { Depth: '1' }, 400],
    ['/a', { If: '(<urn:uuid:none>)' }, 412],
    ['/a', { Timeout: 'junk' }, 200],
  ])('LOCK %s with %j answers %d', async (target, headers, status) => {
    expect((await lock(target, { headers })).status).toBe(status);
    const locks = await dav.state.locks.all(dav.clock.now());
    expect(locks).toHaveLength(status < 300 ? 1 : 0);
  });

  test('LOCK of a locked resource answers 423 and names the conflicting lock', async () => {
    await lock('/f');
    const answer = await lock('/f/x', { user: 'ben' });
    expect(answer.status).toBe(423);
    expect(answer.text).toContain('<D:no-conflicting-lock><D:href>/f/</D:href></D:no-conflicting-lock>');
    expect((await lock('/f/new')).status).toBe(423);
    expect(dav.content('/f/new')).toBeUndefined();
  });

  test('LOCK creates a file in a folder with shared locks only for their owners (RFC 4918 §7.4)', async () => {
    await lock('/f', { scope: 'shared', user: 'ben' });
    expect((await lock('/f/new', { scope: 'shared' })).status).toBe(423);
    expect(dav.content('/f/new')).toBeUndefined();
    const token = tokenOf(await lock('/f', { scope: 'shared' }));
    const headers = { If: `</f> (<${token}>)` };
    expect((await lock('/f/new', { scope: 'shared', headers })).status).toBe(201);
    expect(dav.content('/f/new')).toBe('');
  });

  test('LOCK of a tree with a locked member answers 207 and names it (RFC 4918 §9.10.9)', async () => {
    await lock('/f/sub/y', { user: 'ben' });
    const answer = await lock('/f');
    expect(answer.status).toBe(207);
    expect(answer.text).toContain('<D:href>/f/sub/y</D:href><D:status>HTTP/1.1 423 Locked</D:status>');
    expect(answer.text).toContain('<D:href>/f/</D:href><D:status>HTTP/1.1 424 Failed Dependency</D:status>');
    expect((await lock('/f', { headers: { Depth: '0' } })).status).toBe(200);
  });

  test('shared locks are granted to several users, each with a token', async () => {
    const [ann, ben] = [
      await lock('/a', { scope: 'shared' }),
      await lock('/a', { scope: 'shared', user: 'ben' }),
    ];
    expect([ann.status, ben.status]).toEqual([200, 200]);
    expect(ben.text.indexOf(tokenOf(ben))).toBeLessThan(ben.text.indexOf(tokenOf(ann)));
    expect(ben.text).toContain(tokenOf(ann));
    expect((await lock('/a')).status).toBe(423);
    const put = (token: string, user: string) =>
      dav.send('PUT', '/a', { body: 'new', headers: holding(token), user });
    expect((await put(tokenOf(ben), 'ben')).status).toBe(204);
    expect((await put(tokenOf(ann), 'ann')).status).toBe(204);
    expect((await put(tokenOf(ann), 'ben')).status).toBe(423);
  });

  test.each([
    ['<D:lockinfo xmlns:D="DAV:"/>', 400],
    ['<D:propfind xmlns:D="DAV:"/>', 400],
    [lockInfo('some'), 400],
    [lockInfo().replace('write', 'read'), 422],
    ['<a><b></a>', 400],
  ])('LOCK with the body %s answers %d', async (body, status) => {
    expect((await dav.send('LOCK', '/a', { body })).status).toBe(status);
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
  });

  test('a lock expires after its timeout', async () => {
    await lock('/a', { headers: { Timeout: 'Second-60' } });
    expect((await dav.send('PUT', '/a', { body: 'new' })).status).toBe(423);
    await dav.clock.advance(60_000);
    expect((await dav.send('PUT', '/a', { body: 'new' })).status).toBe(204);
  });
});

describe('lock refresh', () => {
  const refresh = (target: string, headers: Record<string, string>, user = 'ann') =>
    dav.send('LOCK', target, { headers, user });

  test('a refresh extends the lock and its placeholder', async () => {
    const token = tokenOf(await lock('/new', { headers: { Timeout: 'Second-60' } }));
    await dav.clock.advance(59_000);
    const answer = await refresh('/new', {
      ...holding(token),
      Timeout: 'Second-600',
      'Content-Type': 'text/xml',
    });
    expect(answer.status).toBe(200);
    expect(answer.headers['lock-token']).toBeUndefined();
    expect(answer.text).toContain('<D:timeout>Second-600</D:timeout>');
    expect(answer.text).toContain(token);
    expect(dav.files.calls.at(-1)).toMatchObject({
      what: 'keepPlaceholder',
      options: { holdMs: 600_000 },
    });
    await dav.clock.advance(599_000);
    expect((await dav.send('DELETE', '/new')).status).toBe(423);
  });

  test('a refresh leaves a file with content unchanged', async () => {
    const token = tokenOf(await lock('/a'));
    expect((await refresh('/a', holding(token))).status).toBe(200);
    expect(dav.files.calls.filter(({ what }) => what === 'keepPlaceholder')).toEqual([]);
  });

  test("a folder's lock can be refreshed through the URL of a member", async () => {
    const token = tokenOf(await lock('/f'));
    const answer = await refresh('/f/x', holding(token));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('<D:lockroot><D:href>/f/</D:href></D:lockroot>');
  });

  test("a refresh needs the token of the user's own unexpired lock", async () => {
    const token = tokenOf(await lock('/a', { headers: { Timeout: 'Second-60' } }));
    expect((await refresh('/a', {})).status).toBe(400);
    expect((await refresh('/a', holding('urn:uuid:none'))).status).toBe(412);
    expect((await refresh('/f/x', holding(token))).status).toBe(412);
    const other = await refresh('/a', holding(token), 'ben');
    expect(other.status).toBe(412);
    expect(other.text).toContain('<D:lock-token-matches-request-uri/>');
    await dav.clock.advance(60_000);
    expect((await refresh('/a', holding(token))).status).toBe(412);
  });
});

describe('UNLOCK', () => {
  test.each(['<%s>', '%s', ' <%s> '])(
    'UNLOCK with the token written as %j releases the lock',
    async (form) => {
      const token = tokenOf(await lock('/a'));
      const headers = { 'Lock-Token': form.replace('%s', token) };
      expect((await dav.send('UNLOCK', '/a', { headers })).status).toBe(204);
      expect((await dav.send('UNLOCK', '/a', { headers })).status).toBe(409);
      expect((await dav.send('PUT', '/a', { body: 'new' })).status).toBe(204);
    },
  );

  test('UNLOCK with a wrong token answers with the reason', async () => {
    const token = tokenOf(await lock('/a'));
    expect((await dav.send('UNLOCK', '/a')).status).toBe(400);
    expect((await dav.send('UNLOCK', '/a', { headers: { 'Lock-Token': '<>' } })).status).toBe(400);
    const elsewhere = await unlock('/f/x', token);
    expect(elsewhere.status).toBe(409);
    expect(elsewhere.text).toContain('<D:lock-token-matches-request-uri/>');
    expect((await unlock('/a', token, 'ben')).status).toBe(403);
    expect(await dav.state.locks.all(dav.clock.now())).toHaveLength(1);
  });

  test('UNLOCK releases the lock although the service cannot store the placeholder now', async () => {
    const token = tokenOf(await lock('/new'));
    dav.files.failNext('commitPlaceholder', new FileError('busy', 'the service is busy'));
    expect((await unlock('/new', token)).status).toBe(204);
    expect(dav.files.isHeld(path('/new'))).toBe(true);
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
  });
});

describe('locked resources', () => {
  const WRITES: readonly (readonly [string, string, string, Record<string, string>])[] = [
    // lock, method, target, headers
    ['/a', 'PUT', '/a', {}],
    ['/a', 'DELETE', '/a', {}],
    ['/a', 'MOVE', '/a', { Destination: '/b' }],
    ['/a', 'MOVE', '/f/x', { Destination: '/a' }],
    ['/a', 'COPY', '/f/x', { Destination: '/a' }],
    ['/a', 'MOVE', '/a', { Destination: '/A' }],
    ['/f', 'PUT', '/f/x', {}],
    ['/f', 'PUT', '/f/new', {}],
    ['/f', 'MKCOL', '/f/new', {}],
    ['/f', 'DELETE', '/f/sub/y', {}],
    ['/f', 'MOVE', '/a', { Destination: '/f/a' }],
    ['/f', 'MOVE', '/f/x', { Destination: '/x' }],
    ['/f', 'COPY', '/a', { Destination: '/f/sub/a' }],
    ['/f', 'DELETE', '/f', {}],
    // Locks further down protect the whole tree above them.
    ['/f/sub/y', 'DELETE', '/f', {}],
    ['/f/sub/y', 'MOVE', '/f', { Destination: '/moved' }],
    ['/f/sub/y', 'COPY', '/g', { Destination: '/f' }],
  ];

  test.each(WRITES)(
    'a lock on %s answers 423 to %s %s %j without its token',
    async (locked, method, target, headers) => {
      const token = tokenOf(await lock(locked));
      const before = dav.files.paths();
      const body = method === 'PUT' ? { body: 'new' } : {};
      for (const [user, more] of [
        ['ann', {}],
        ['ben', {}],
        ['ben', { If: `</${locked.slice(1)}> (<${token}>)` }],
      ] as const) {
        const refused = await dav.send(method, target, { headers: { ...headers, ...more }, user, ...body });
        expect(refused.status).toBe(423);
        expect(refused.text).toContain(
          `<D:lock-token-submitted><D:href>${locked === '/f' ? '/f/' : locked}</D:href></D:lock-token-submitted>`,
        );
      }
      expect(dav.files.paths()).toEqual(before);
      const submitted = { ...headers, If: `<${dav.url}${locked}> (<${token}>)` };
      const allowed = await dav.send(method, target, { headers: submitted, ...body });
      expect([201, 204]).toContain(allowed.status);
    },
  );

  test('a depth 0 lock on a folder protects its membership, not the content of its members', async () => {
    const token = tokenOf(await lock('/f', { headers: { Depth: '0' } }));
    const status = async (method: string, target: string, headers: Record<string, string> = {}) =>
      (await dav.send(method, target, { headers, ...(method === 'PUT' && { body: 'new' }) })).status;
    expect(await status('PUT', '/f/x')).toBe(204);
    expect(await status('PUT', '/f/sub/new')).toBe(201);
    expect(await status('PUT', '/f/new')).toBe(423);
    expect(await status('MKCOL', '/f/new')).toBe(423);
    expect(await status('DELETE', '/f/x')).toBe(423);
    expect(await status('MOVE', '/f/x', { Destination: '/x' })).toBe(423);
    expect(await status('COPY', '/a', { Destination: '/f/a' })).toBe(423);
    expect(await status('COPY', '/a', { Destination: '/f/x' })).toBe(204);
    expect(await status('LOCK', '/f/new')).toBe(400);
    expect((await lock('/f/new')).status).toBe(423);
    expect(await status('PUT', '/f/new', { If: `</f> (<${token}>)` })).toBe(201);
  });

  test('a locked resource can be read and copied by every user', async () => {
    await lock('/f');
    for (const method of ['GET', 'HEAD', 'PROPFIND', 'OPTIONS'])
      expect((await dav.send(method, '/f/x', { user: 'ben' })).status).toBeLessThan(300);
    const headers = { Destination: '/copy' };
    expect((await dav.send('COPY', '/f', { headers, user: 'ben' })).status).toBe(201);
  });

  test('MOVE leaves no lock at its source and destination', async () => {
    const token = tokenOf(await lock('/f/x'));
    const headers = { Destination: '/x', ...holding(token) };
    expect((await dav.send('MOVE', '/f/x', { headers })).status).toBe(201);
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
    const again = tokenOf(await lock('/x'));
    await dav.send('DELETE', '/x', { headers: holding(again) });
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
  });

  test('a lock stays when a name above it changes only in letter case', async () => {
    const token = tokenOf(await lock('/f/x'));
    const headers = { Destination: '/F', If: `</f/x> (<${token}>)` };
    expect((await dav.send('MOVE', '/f', { headers })).status).toBe(204);
    expect((await dav.send('PUT', '/F/x', { body: 'new', user: 'ben' })).status).toBe(423);
  });

  test('MOVE over a locked resource keeps its lock and ends the locks below it', async () => {
    const kept = tokenOf(await lock('/f', { headers: { Depth: '0' } }));
    const below = tokenOf(await lock('/f/x'));
    const If = `</f> (<${kept}>) </f/x> (<${below}>)`;
    expect((await dav.send('COPY', '/g', { headers: { Destination: '/f', If } })).status).toBe(204);
    const locks = await dav.state.locks.all(dav.clock.now());
    expect(locks.map(({ token }) => token)).toEqual([kept]);
  });
});

describe('If header', () => {
  test.each([
    ['(<T> ["E"])', 204],
    ['(<T>)', 204],
    ['(Not <DAV:no-lock>) (<T>)', 204],
    ['(<urn:other>) (<T>)', 204],
    ['(<T> ["other"]) (<T> ["E"])', 204],
    ['(<T> ["other"])', 412],
    ['(<T> Not ["E"])', 412],
    ['(Not <T>)', 412],
    ['(<DAV:no-lock>)', 412],
    ['(<T>) nonsense', 400],
    ['(<T> ["other"]) (Not <DAV:no-lock> ["other"])', 412],
    // The condition is true but names no existing lock, so the lock still refuses the request.
    ['(<urn:other>) (Not <DAV:no-lock>)', 423],
    ['(["E"])', 423],
    ['</f/x> (Not <T>)', 204],
    ['</f/x> (<T>)', 412],
    ['</elsewhere/%zz> (<T>) </a> (<T>)', 204],
    ['<http://other.example/a> (<T>)', 204],
    ['(<T> [E])', 412],
    ['(<T> [*])', 412],
    ['(<T> [W/"E"])', 204],
  ])('PUT with If: %s on a locked file answers %d', async (form, status) => {
    const token = tokenOf(await lock('/a'));
    const { etag = '' } = (await dav.send('HEAD', '/a')).headers;
    const If = form.replaceAll('<T>', `<${token}>`).replaceAll('"E"', etag);
    const answer = await dav.send('PUT', '/a', { body: 'new', headers: { If } });
    expect(answer.status).toBe(status);
    expect(dav.content('/a')).toBe(status === 204 ? 'new' : 'old');
  });

  test('MOVE accepts two If lines, and an untagged list with the token of the destination (Finder)', async () => {
    const [from, to] = [tokenOf(await lock('/a')), tokenOf(await lock('/f/x'))];
    const lines = `If: (<${from}>)\r\nIf: (<${to}>)\r\n`;
    const request = `MOVE /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Test-User: ann\r\nDestination: http://x/f/x\r\n${lines}\r\n`;
    expect(await dav.raw(request)).toMatch(/^HTTP\/1.1 204 /);
    const only = tokenOf(await lock('/f/sub/y'));
    const headers = { Destination: '/f/sub/y', ...holding(only) };
    await dav.file('/b', 'of b');
    expect((await dav.send('MOVE', '/b', { headers })).status).toBe(204);
    expect(dav.content('/f/sub/y')).toBe('of b');
  });

  test('PUT with an If header that names 80 resources answers 400', async () => {
    const If = Array.from({ length: 80 }, (_, index) => `</n${index}> (["none"])`).join('');
    const answer = await dav.send('PUT', '/a', { body: 'new', headers: { If } });
    expect(answer.status).toBe(400);
    expect(dav.content('/a')).toBe('old');
  });
});
