import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROUTES } from '../../../src/service/routes/table.ts';
import { effort } from '../../support/effort.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { headerJson, put, rpc, send, upload } from '../../support/service-client.ts';

const logged: unknown[] = [];
let service: TestService;

beforeAll(async () => {
  const keep = (event: string, fields = {}) => logged.push({ event, ...fields });
  service = await startTestService({ log: { info: () => undefined, warn: keep, error: keep } });
  await put(service, '/folder/file', 'text');
});
afterAll(() => service.close());

const TRICKY_TEXTS = [
  ...[
    '',
    '/',
    '//',
    '/folder',
    '/folder/file',
    '/folder/',
    '/FOLDER/FILE',
    '/folder/file/below',
    '/a\\b',
    '/.',
    '/../x',
  ],
  ...[
    '/\0',
    '/a\nb',
    '/\ud800',
    '/\udc00x',
    '/e\u0301',
    '/\u{1f600}',
    '/İ',
    `/${'x'.repeat(300)}`,
    `/${'d/'.repeat(500)}x`,
  ],
  ...[
    'id:',
    'id:x',
    'id:AAAAAAAAAAAAAAAAAAAAAA',
    'id:AAAAAAAAAAAAAAAAAAAAAA/x',
    'ns:',
    'ns:1',
    'ns:1/x',
    'ns:01//',
  ],
  ...[
    'rev:',
    'rev:0123456789',
    'rev:fffffffffffffffffffffffffffffff',
    '0123456789',
    'ffffffffffffffffffffffffffffffff',
  ],
  ...['constructor', '__proto__', '2020-02-30T00:00:00Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59Z'],
  ...['add', 'update', 'path', 'id', 'concurrent', 'https://x/scl/fi/a/b?rlkey=c', 'a.b.c', 'AAAA'],
];

const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...TRICKY_TEXTS),
    fc.constantFrom(null, true, false, 0, 1, -1, 1.5, 30, 2 ** 41, 2 ** 53, 1e300),
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('.tag', 'path', 'update', 'session_id', 'offset', 'x'), tie('any'), {
      maxKeys: 3,
    }),
  ),
})).any;

const FIELDS = [
  ...[
    'path',
    'from_path',
    'to_path',
    'rev',
    'mode',
    'limit',
    'cursor',
    'commit',
    'entries',
    'settings',
    'url',
  ],
  ...[
    'content_hash',
    'client_modified',
    'session_type',
    'close',
    'recursive',
    'parent_rev',
    'before_rev',
    'query',
  ],
];

/** Objects with fields of the functions, mostly with values of the right type. */
const argument = fc.oneof(
  value,
  fc.dictionary(fc.constantFrom(...FIELDS), value, { maxKeys: 4 }),
  fc.record({ path: fc.constantFrom(...TRICKY_TEXTS) }),
  fc.record({ from_path: fc.constantFrom(...TRICKY_TEXTS), to_path: fc.constantFrom(...TRICKY_TEXTS) }),
  fc.record({ path: fc.constantFrom(...TRICKY_TEXTS), rev: fc.constantFrom(...TRICKY_TEXTS) }),
  fc.record({ cursor: fc.constantFrom(...TRICKY_TEXTS) }),
  fc.record({ url: fc.constantFrom(...TRICKY_TEXTS) }),
  fc.record({
    cursor: fc.record({ session_id: fc.constantFrom(...TRICKY_TEXTS), offset: value }),
    commit: fc.record({ path: fc.constantFrom(...TRICKY_TEXTS) }),
  }),
);

// A long poll with a valid argument waits, and a revoked token would fail the other calls.
const NAMES = [...ROUTES.keys()].filter((name) => !/longpoll|revoke$/.test(name));

test.each(NAMES)('%s answers 200, 400 or 409 to random arguments and logs no error', async (name) => {
  const style = ROUTES.get(name)?.style;
  await fc.assert(
    fc.asyncProperty(argument, async (given) => {
      const answered =
        style === 'rpc'
          ? await rpc(service, name, given)
          : style === 'upload'
            ? await upload(service, name, given, { body: 'x' })
            : await send(`${service.url}/2/${name}`, {
                method: 'POST',
                headers: { authorization: `Bearer ${service.token}`, 'dropbox-api-arg': headerJson(given) },
              });
      expect([200, 400, 409]).toContain(answered.status);
      expect(answered.headers.get('x-dropbox-request-id')).toMatch(/^[0-9a-f]{32}$/);
    }),
    { numRuns: effort(15) },
  );
  expect(logged).toEqual([]);
});
