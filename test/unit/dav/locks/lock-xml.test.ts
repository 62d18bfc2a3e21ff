import { expect, test } from 'vitest';
import { activeLockXml, lockDiscoveryXml, parseLockInfo } from '../../../../src/dav/locks/lock-xml.ts';
import { davChild, textOf } from '../../../../src/dav/xml/xml-element.ts';
import { XmlReader } from '../../../../src/dav/xml/xml-reader.ts';
import type { Lock } from '../../../../src/state/locks.ts';
import { pathOf } from '../../../../src/util/path.ts';

async function parse(body: string) {
  const root = await new XmlReader().read(Buffer.from(body));
  if (!root) throw new Error('no root');
  return parseLockInfo(root);
}

const lockInfo = (inside: string) => `<D:lockinfo xmlns:D="DAV:">${inside}</D:lockinfo>`;
const WRITE = '<D:locktype><D:write/></D:locktype>';
const EXCLUSIVE = '<D:lockscope><D:exclusive/></D:lockscope>';

const lock: Lock = {
  token: 'urn:uuid:1',
  root: pathOf(['a']),
  scope: 'exclusive',
  depth: '0',
  ownerXml: '<x:href xmlns:x="DAV:">http://a/?b&amp;c</x:href>',
  principal: 'ann',
  timeoutSeconds: 600,
  expiresMs: 600_000,
};

test('parseLockInfo returns the scope, and the owner as self-contained XML', async () => {
  const owner = '<D:owner xmlns:o="urn:o"> <o:who>Ann &amp; Bo</o:who><D:href>mailto:a</D:href> </D:owner>';
  expect(await parse(lockInfo(EXCLUSIVE + WRITE + owner))).toEqual({
    scope: 'exclusive',
    ownerXml: '<o:who xmlns:o="urn:o">Ann &amp; Bo</o:who><D:href xmlns:D="DAV:">mailto:a</D:href>',
  });
  expect(await parse(lockInfo(`${WRITE}<D:lockscope><D:shared/></D:lockscope>`))).toEqual({
    scope: 'shared',
    ownerXml: '',
  });
});

test.each([
  ['another element', '<lockinfo/>', 400, /must be a DAV:lockinfo/],
  ['no scope', lockInfo(WRITE), 400, /lockscope/],
  ['both scopes', lockInfo(`${WRITE}<D:lockscope><D:shared/><D:exclusive/></D:lockscope>`), 400, /lockscope/],
  ['no type', lockInfo(EXCLUSIVE), 400, /locktype/],
  ['another type', lockInfo(`${EXCLUSIVE}<D:locktype><D:read/></D:locktype>`), 422, /DAV:write/],
  ['a huge owner', lockInfo(`${EXCLUSIVE}${WRITE}<D:owner>${'é'.repeat(513)}</D:owner>`), 400, /1024 bytes/],
])('parseLockInfo refuses %s', async (_, body, status, message) => {
  await expect(parse(body)).rejects.toMatchObject({ status, message });
});

test('activeLockXml renders all elements of RFC 4918 §14.1, well-formed with any href', async () => {
  const xml = activeLockXml(lock, '/a&b<c');
  const root = await new XmlReader().read(
    Buffer.from(xml.replace('<D:activelock>', '<D:activelock xmlns:D="DAV:">')),
  );
  const text = (name: string) => {
    const child = root && davChild(root, name);
    return child && textOf(child);
  };
  expect(text('depth')).toBe('0');
  expect(text('timeout')).toBe('Second-600');
  expect(text('locktoken')).toBe('urn:uuid:1');
  expect(text('lockroot')).toBe('/a&b<c');
  expect(text('owner')).toBe('http://a/?b&c');
});

test('lockdiscovery shows the remaining time of a lock', () => {
  const xml = lockDiscoveryXml([lock], () => '/a', 590_500);
  expect(xml).toContain('<D:timeout>Second-10</D:timeout>');
});

test('lockdiscovery shows at most 64 KiB of locks, each of them whole', () => {
  const locks = Array.from({ length: 96 }, (_, index) => ({
    ...lock,
    token: `urn:uuid:${index}`,
    ownerXml: 'é'.repeat(512),
  }));
  const xml = lockDiscoveryXml(locks, () => '/a', 0);
  const shown = xml.split('</D:activelock>').length - 1;
  expect(Buffer.byteLength(xml)).toBeLessThanOrEqual(64 * 1024);
  expect(shown).toBeGreaterThan(40);
  expect(xml).toBe(
    locks
      .slice(0, shown)
      .map((one) => activeLockXml(one, '/a'))
      .join(''),
  );
});
