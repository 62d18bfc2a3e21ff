import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StateUnavailable } from '../../../../src/state/errors.ts';
import { type DavAnswer, type DavServer, startDav } from '../../../support/dav.ts';
import { eventually } from '../../../support/eventually.ts';
import { Gate } from '../../../support/gate.ts';

let dav: DavServer;
/** Gates that hold calls of the drive's methods, by name. */
let gates: Map<string | symbol, Gate>;

beforeEach(async () => {
  gates = new Map();
  dav = await startDav({ wrap: (drive) => ({ ...drive, files: gated(drive.files, gates) }) });
  await dav.file('/a', 'old');
  await dav.file('/f/x', 'x');
  await dav.folder('/g');
});
afterEach(() => dav.close());

function gated<T extends object>(files: T, closed: ReadonlyMap<string | symbol, Gate>): T {
  return new Proxy(files, {
    get(_, name) {
      const method: unknown = Reflect.get(files, name);
      if (typeof method !== 'function') return method;
      const gate = closed.get(name);
      if (!gate) return method.bind(files);
      return async (...words: unknown[]) => {
        await gate.pass();
        return method.apply(files, words);
      };
    },
  });
}

const LOCK_INFO =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';

const SHARED_LOCK_INFO = LOCK_INFO.replace('exclusive', 'shared');

const SHARE_LINK =
  '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><shared-link xmlns="https://davgate.dev/ns"/></D:prop></D:set></D:propertyupdate>';

/** Sends a LOCK, with depth infinity unless the headers say otherwise. */
const lock = (target: string, headers: Record<string, string> = {}, user = 'ben') =>
  dav.send('LOCK', target, { body: LOCK_INFO, user, headers });

const tokenOf = (answer: DavAnswer) => String(answer.headers['lock-token']).replace(/[<>]/g, '');

/** Starts a PUT by ann, and returns when its locks are checked and half of its body is sent. */
async function halfSentPut(target: string, headers = ''): Promise<Socket> {
  const socket = dav.socket();
  socket.write(
    `PUT ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 20\r\nExpect: 100-continue\r\n${headers}\r\n`,
  );
  const [leave] = await once(socket, 'data');
  expect(String(leave)).toMatch(/^HTTP\/1\.1 100 /);
  socket.write('ten bytes.');
  return socket;
}

async function finish(socket: Socket): Promise<string> {
  socket.write('and ten...');
  const [answer] = await once(socket, 'data');
  return String(answer).slice(9, 12);
}

/** Advances the clock past the time that a LOCK waits for a running request. */
async function passLockWait(): Promise<void> {
  await dav.clock.untilSleeping();
  await dav.clock.advance(2_000);
}

describe('LOCK during a running request', () => {
  test.each([
    ['MOVE', '/f', 'move', ['/f', '/f/x', '/g/f', '/', '/g'], { Destination: '/g/f' }, ''],
    ['COPY', '/f', 'copy', ['/g/f', '/', '/g'], { Destination: '/g/f' }, ''],
    ['DELETE', '/f', 'remove', ['/f', '/f/x', '/'], {}, ''],
    ['MKCOL', '/f/new', 'createFolder', ['/f', '/'], {}, ''],
    ['PROPPATCH', '/a', 'shareLink', ['/a', '/'], {}, SHARE_LINK],
  ] as const)(
    'while %s of %s runs (in %s), LOCK of %j answers 423',
    async (method, target, call, places, headers, body) => {
      const gate = new Gate();
      gates.set(call, gate);
      const running = dav.send(method, target, { headers, body });
      await gate.reached;
      for (const place of places) {
        const Depth = place === '/f' && method === 'MKCOL' ? '0' : 'infinity';
        const refused = lock(place, { Depth });
        await passLockWait();
        expect([423, 207], place).toContain((await refused).status);
      }
      expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
      expect((await lock('/beside')).status).toBe(201);
      gate.open();
      expect((await running).status).toBeLessThan(300);
    },
  );

  test('LOCK during a PUT answers 423 and says why, and is granted once the file is stored', async () => {
    const running = await halfSentPut('/a');
    const refused = lock('/A', { Depth: '0' });
    await passLockWait();
    const { status, text } = await refused;
    expect(status).toBe(423);
    expect(text).toContain('<D:no-conflicting-lock><D:href>/a</D:href></D:no-conflicting-lock>');
    expect(text).toContain('/a is being changed by another request; try again later');
    expect(await finish(running)).toBe('204');
    expect(dav.content('/a')).toBe('ten bytes.and ten...');
    expect((await lock('/a')).status).toBe(200);
  });

  test('a PUT of a new file keeps locks off its folder, and a PUT that replaces a file does not', async () => {
    const replacing = await halfSentPut('/f/x');
    expect((await lock('/f', { Depth: '0' })).status).toBe(200);
    expect(await finish(replacing)).toBe('204');
    const making = await halfSentPut('/g/new');
    const refused = lock('/g', { Depth: '0' });
    await passLockWait();
    expect((await refused).status).toBe(423);
    expect(await finish(making)).toBe('201');
  });

  test('LOCK of a tree in which a PUT runs answers 207 and names the file (RFC 4918 §9.10.9)', async () => {
    const running = await halfSentPut('/f/x');
    const refused = lock('/f');
    await passLockWait();
    const { status, text } = await refused;
    expect(status).toBe(207);
    expect(text).toContain('<D:href>/f/x</D:href><D:status>HTTP/1.1 423 Locked</D:status>');
    expect(text).toContain('<D:href>/f/</D:href><D:status>HTTP/1.1 424 Failed Dependency</D:status>');
    expect(await finish(running)).toBe('204');
  });

  test('UNLOCK keeps other locks away until the new file is committed', async () => {
    const token = tokenOf(await lock('/new', { Timeout: 'Second-60' }));
    const gate = new Gate();
    gates.set('commitPlaceholder', gate);
    const running = dav.send('UNLOCK', '/new', { user: 'ben', headers: { 'Lock-Token': `<${token}>` } });
    await gate.reached;
    await dav.clock.advance(60_000);
    const refused = lock('/new', {}, 'ann');
    await passLockWait();
    expect((await refused).status).toBe(423);
    gate.open();
    expect((await running).status).toBe(204);
  });

  test('LOCK of an unmapped URL keeps locks off the folder until its file is made', async () => {
    const gate = new Gate();
    gates.set('keepPlaceholder', gate);
    const running = lock('/g/new', {}, 'ann');
    await gate.reached;
    const refused = lock('/g', { Depth: '0' });
    await passLockWait();
    expect((await refused).status).toBe(423);
    gate.open();
    expect((await running).status).toBe(201);
    expect((await lock('/g', { Depth: '0' })).status).toBe(200);
  });
});

describe('waiting LOCK', () => {
  test('a LOCK waiting for a PUT is granted as soon as the PUT ends, without any time passing', async () => {
    const running = await halfSentPut('/a');
    const waiting = lock('/a');
    await dav.clock.untilSleeping();
    expect(await finish(running)).toBe('204');
    expect((await waiting).status).toBe(200);
  });

  test('a LOCK waiting for a PUT is granted as soon as the PUT is aborted, and the old content stays', async () => {
    const running = await halfSentPut('/a');
    const waiting = lock('/a');
    await dav.clock.untilSleeping();
    running.destroy();
    expect((await waiting).status).toBe(200);
    expect(dav.content('/a')).toBe('old');
  });

  test('a LOCK with If-None-Match: * that waited for the PUT of a new file answers 412', async () => {
    const running = await halfSentPut('/new');
    const waiting = lock('/new', { 'If-None-Match': '*' });
    await dav.clock.untilSleeping();
    expect(await finish(running)).toBe('201');
    expect((await waiting).status).toBe(412);
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
  });

  test('a LOCK waiting for a PUT takes no lock when its client goes away', async () => {
    const running = await halfSentPut('/a');
    const socket = dav.socket();
    socket.write(`LOCK /a HTTP/1.1\r\nHost: x\r\nContent-Length: ${LOCK_INFO.length}\r\n\r\n${LOCK_INFO}`);
    await dav.clock.untilSleeping();
    socket.destroy();
    await eventually(() => expect(dav.clock.sleeping).toBe(0));
    expect(await finish(running)).toBe('204');
    await dav.untilAlone();
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
  });

  test('of 20 LOCKs of one new name one is granted, and the others answer 423 without waiting', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => lock('/new')));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(423)]);
  });
});

describe('LOCK of a resource that is changed just before the lock is granted', () => {
  /** Runs `work` before the next lock is created, when LOCK has checked everything. */
  function beforeGrant(work: () => Promise<unknown>): void {
    const { create } = dav.state.locks;
    dav.state.locks.create = async (...wanted) => {
      dav.state.locks.create = create;
      await work();
      return create(...wanted);
    };
  }
  const granted = () => dav.state.locks.all(dav.clock.now());

  test.each([
    ['/a', 'If', (tag: string) => `([${tag}])`],
    ['/a', 'If-Match', (tag: string) => tag],
    ['/new', 'If-None-Match', () => '*'],
  ])('LOCK %s whose %s is false by then answers 412 and leaves no lock', async (target, name, value) => {
    const { etag = '' } = (await dav.send('HEAD', target)).headers;
    beforeGrant(() => dav.file(target, 'of another client'));
    expect((await lock(target, { [name]: value(etag) })).status).toBe(412);
    expect(await granted()).toEqual([]);
    expect(dav.content(target)).toBe('of another client');
  });

  test('LOCK of a file that is deleted by then answers 201 and creates an empty file', async () => {
    beforeGrant(() => dav.send('DELETE', '/a'));
    expect((await lock('/a')).status).toBe(201);
    expect(dav.content('/a')).toBe('');
    expect(await granted()).toHaveLength(1);
  });

  test('LOCK of a file that is created by then answers 200 and keeps it', async () => {
    beforeGrant(() => dav.file('/new', 'of another client'));
    expect((await lock('/new')).status).toBe(200);
    expect(dav.content('/new')).toBe('of another client');
  });

  test('LOCK of a file in a folder that is deleted by then answers 409 and leaves no lock', async () => {
    beforeGrant(() => dav.send('DELETE', '/f'));
    expect((await lock('/f/x')).status).toBe(409);
    expect(await granted()).toEqual([]);
  });
});

test.each([
  ['an exclusive', LOCK_INFO, 'neither the lock nor the new file', undefined],
  ['a shared', SHARED_LOCK_INFO, 'the new file, in which others may have stored something, but no lock', ''],
])('%s LOCK whose client goes away before it gets the token leaves %3$s', async (_, body, _left, content) => {
  const gate = new Gate();
  gates.set('keepPlaceholder', gate);
  const socket = dav.socket();
  socket.write(`LOCK /g/new HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  await gate.reached;
  socket.destroy();
  await dav.untilAlone();
  gate.open();
  await eventually(async () => expect(await dav.state.locks.all(dav.clock.now())).toEqual([]));
  expect(dav.files.calls.some(({ what }) => what === 'keepPlaceholder')).toBe(true);
  expect(dav.content('/g/new')).toBe(content);
});

describe('PUT under its own lock', () => {
  const putUnderLock = async () => {
    const token = tokenOf(await lock('/a', { Timeout: 'Second-60' }, 'ann'));
    return { token, running: await halfSentPut('/a', `If: (<${token}>)\r\n`) };
  };

  test('a PUT stays protected against new locks when its own lock runs out', async () => {
    const { running } = await putUnderLock();
    await dav.clock.advance(60_000);
    const refused = lock('/a');
    await passLockWait();
    expect((await refused).status).toBe(423);
    expect(await finish(running)).toBe('204');
  });

  test('a PUT stays protected against new locks when its own lock is released', async () => {
    const { token, running } = await putUnderLock();
    expect((await dav.send('UNLOCK', '/a', { headers: { 'Lock-Token': `<${token}>` } })).status).toBe(204);
    const refused = lock('/a');
    await passLockWait();
    expect((await refused).status).toBe(423);
    expect(await finish(running)).toBe('204');
  });
});

test.each([
  ['DELETE', 204, {}],
  ['MOVE', 201, { Destination: '/g/f' }],
])(
  '%s answers %d when the lock of what is gone cannot be ended at once, and ends it later',
  async (method, status, headers) => {
    const token = tokenOf(await lock('/f/x', {}, 'ann'));
    const { release } = dav.state.locks;
    const withdrawn: string[] = [];
    dav.state.locks.release = async () => Promise.reject(new StateUnavailable('redis://x', 'it is away'));
    dav.state.locks.withdraw = async (ended) => {
      withdrawn.push(ended.token);
      await release(ended.token);
    };
    expect(
      (await dav.send(method, '/f', { headers: { ...headers, If: `</f/x> (<${token}>)` } })).status,
    ).toBe(status);
    expect(withdrawn).toEqual([token]);
    expect(await dav.state.locks.all(dav.clock.now())).toEqual([]);
  },
);

test('three PUTs of one file can run at the same time', async () => {
  const [one, other] = [await halfSentPut('/a'), await halfSentPut('/a')];
  expect((await dav.send('PUT', '/a', { body: 'third' })).status).toBe(204);
  expect(await finish(one)).toBe('204');
  expect(await finish(other)).toBe('204');
});

test('a request refused for a lock leaves nothing in the way of the next lock', async () => {
  const token = tokenOf(await lock('/a'));
  expect((await dav.send('PUT', '/a', { body: 'new' })).status).toBe(423);
  const headers = { 'Lock-Token': `<${token}>` };
  expect((await dav.send('UNLOCK', '/a', { headers, user: 'ben' })).status).toBe(204);
  expect((await lock('/a')).status).toBe(200);
});
