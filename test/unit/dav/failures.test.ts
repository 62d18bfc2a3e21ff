import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FAULTS, type Fault, FileError } from '../../../src/drive/errors.ts';
import { StateUnavailable, StateUnwritable } from '../../../src/state/errors.ts';
import { type DavServer, startDav } from '../../support/dav.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/a', 'old');
});
afterEach(() => dav.close());

const FINDER = 'WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)';
const DAVFS2 = 'davfs2/1.7.0 neon/0.33.0';
const WINDOWS = 'Microsoft-WebDAV-MiniRedir/10.0.19045';

/** Status by fault: for other clients, for Finder and for davfs2. */
const STATUS: Record<Fault, readonly [number, number, number]> = {
  'not-found': [404, 404, 404],
  'parent-missing': [409, 409, 409],
  exists: [405, 405, 405],
  'not-a-folder': [409, 409, 409],
  'is-a-folder': [405, 405, 405],
  changed: [412, 412, 412],
  forbidden: [403, 403, 403],
  'not-entitled': [403, 403, 403],
  'bad-name': [403, 403, 403],
  'into-itself': [403, 403, 403],
  'too-large': [413, 413, 413],
  'too-many': [403, 403, 403],
  'no-space': [507, 507, 507],
  'over-quota': [507, 507, 507],
  incomplete: [400, 400, 400],
  checksum: [400, 400, 400],
  busy: [503, 423, 504],
  offline: [503, 423, 504],
  intercepted: [503, 423, 504],
  unauthorized: [503, 423, 504],
  unsupported: [403, 403, 403],
  broken: [500, 423, 500],
};

describe.each(FAULTS)('the fault %s', (fault) => {
  test.each([
    [WINDOWS, 0],
    [FINDER, 1],
    [DAVFS2, 2],
  ] as const)(
    `a PUT that fails with ${fault} answers %s with the status it understands, and keeps the old content`,
    async (agent, column) => {
      dav.files.failNext('write', new FileError(fault, `what went wrong: ${fault}`));
      const answer = await dav.send('PUT', '/a', { body: 'new', agent });
      expect(answer.status).toBe(STATUS[fault][column]);
      if (fault === 'over-quota') expect(answer.text).toContain('<D:quota-not-exceeded/>');
      expect(answer.text).toContain(`what went wrong: ${fault}`);
      const isBusy = ['busy', 'offline', 'intercepted', 'unauthorized'].includes(fault);
      expect(answer.headers['retry-after']).toBe(isBusy ? '10' : undefined);
      expect(dav.content('/a')).toBe('old');
    },
  );
});

describe('internal errors', () => {
  test('an internal error answers without its details, and with the request id of its log line', async () => {
    for (const [agent, status] of [
      [WINDOWS, 500],
      [FINDER, 423],
    ] as const) {
      dav.files.failNext('stat', new TypeError('secret of line 17'));
      const answer = await dav.send('GET', '/a', { agent });
      expect(answer.status).toBe(status);
      expect(answer.text).not.toContain('secret');
      const { requestId } = dav.errors.at(-1) ?? {};
      expect(requestId).toMatch(/^[0-9a-f]{32}$/);
      expect(answer.text).toBe(`internal error; see davgate's log (request ${requestId})\n`);
    }
    expect(dav.errors).toHaveLength(2);
    expect(dav.errors[0]).toMatchObject({ method: 'GET', status: 500 });
    expect(dav.errors[0]?.['requestId']).not.toBe(dav.errors[1]?.['requestId']);
    expect(String(dav.errors[0]?.['reason'])).toContain('secret of line 17');
  });

  test('a state store on a full disk answers 507 without its directory, and with the request id of its log line', async () => {
    dav.files.failNext('stat', new StateUnwritable('/the/directory', 'the disk is full; free some space'));
    const answer = await dav.send('GET', '/a');
    expect(answer.status).toBe(507);
    expect(answer.text).not.toContain('/the/directory');
    expect(answer.text).toContain(`(request ${dav.errors[0]?.['requestId']})`);
  });

  test('an unreachable state store answers 503 with Retry-After, and its address is only in the log', async () => {
    for (const [agent, status] of [
      [WINDOWS, 503],
      [FINDER, 423],
    ] as const) {
      dav.files.failNext('stat', new StateUnavailable('redis://inside:6379', 'nothing listens there'));
      const answer = await dav.send('GET', '/a', { agent });
      expect(answer.status).toBe(status);
      expect(answer.headers['retry-after']).toBe('10');
      expect(answer.text).not.toContain('inside');
    }
    expect(String(dav.errors[0]?.['reason'])).toContain('redis://inside:6379');
  });

  test('a refusal of a bad request is not logged', async () => {
    await dav.send('GET', '/none');
    await dav.send('PUT', '/none/a', { body: 'x' });
    expect(dav.errors).toEqual([]);
  });
});
