import { describe, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../../../src/dav/xml/element.ts';
import { readXml, XML_LIMITS } from '../../../../src/dav/xml/read.ts';

const MIB = 1024 * 1024;

/** What the reader says of `body`: its text, or how it refuses it. */
async function read(body: string | Uint8Array) {
  return readXml(Buffer.from(body)).then(
    (root) => root && textOf(root),
    (error) => `${error.status} ${error.message}`,
  );
}

describe('what is accepted', () => {
  test('nothing at all is no document', async () => {
    expect(await readXml(new Uint8Array(0))).toBeUndefined();
  });

  test('names are resolved to namespaces, in elements and attributes', async () => {
    const root = await readXml(
      Buffer.from('<a:x xmlns:a="urn:a" xmlns="urn:b" k="1" a:k="2"><y/><z xmlns=""/></a:x>'),
    );
    expect(root).toMatchObject({ namespace: 'urn:a', name: 'x' });
    expect(root?.attributes).toMatchObject([
      { namespace: '', name: 'k', value: '1' },
      { namespace: 'urn:a', name: 'k', value: '2' },
    ]);
    expect(root && childrenOf(root)).toMatchObject([
      { namespace: 'urn:b', name: 'y' },
      { namespace: '', name: 'z' },
    ]);
  });

  test('text, CDATA and the five entities', async () => {
    expect(await read('<a>1<![CDATA[<2>]]>&amp;&lt;&gt;&quot;&apos;&#x1F600;<!-- no --><?no?></a>')).toBe(
      '1<2>&<>"\'😀',
    );
  });

  test.each([
    ['UTF-8', Buffer.from('<a>ü€😀</a>')],
    ['UTF-8 with a byte order mark', Buffer.from('\ufeff<a>ü€😀</a>')],
    ['declared UTF-8', Buffer.from('<?xml version="1.0" encoding="utf-8"?><a>ü€😀</a>')],
    ['UTF-16 little-endian', Buffer.from('<a>ü€😀</a>', 'utf16le')],
    [
      'UTF-16 with a byte order mark',
      Buffer.from('\ufeff<?xml version="1.0" encoding="UTF-16"?><a>ü€😀</a>', 'utf16le'),
    ],
    ['UTF-16 big-endian', Buffer.from('\ufeff<a>ü€😀</a>', 'utf16le').swap16()],
  ])('%s', async (_, body) => {
    expect(await read(body)).toBe('ü€😀');
  });

  test('a body in pieces of one byte', async () => {
    const bytes = Buffer.from('\ufeff<a>ü€😀</a>');
    const pieces = async function* () {
      for (const byte of bytes) yield Uint8Array.of(byte);
    };
    const root = await readXml(pieces());
    expect(root && textOf(root)).toBe('ü€😀');
  });
});

describe('what is refused, and why', () => {
  const lol = '<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">';
  test.each([
    ['a document type', '<!DOCTYPE a><a/>', /400 .*document type/],
    ['entities that grow', `<!DOCTYPE a [<!ENTITY a "lol">${lol}]><a>&b;</a>`, /400 .*document type/],
    [
      'an external entity',
      '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
      /400 .*document type/,
    ],
    ['an unknown entity', '<a>&nbsp;</a>', /400 .*undefined entity/],
    ['an entity named like something of the language', '<a>&constructor;</a>', /400 .*undefined entity/],
    ['10,000 nested elements', '<a>'.repeat(10_000), /400 .*deeper than 64/],
    [
      'an empty namespace for a prefix (litmus propfind_invalid2)',
      '<a xmlns:x=""/>',
      /400 .*undefine prefix/,
    ],
    ['a prefix that is not bound', '<x:a/>', /400 .*unbound namespace prefix: "x"/],
    ['an end that is missing (litmus propfind_invalid)', '<a><b>', /400 .*unclosed tag: b/],
    ['two roots', '<a/><b/>', /400 .*only one root/],
    ['no root', '  \r\n', /400 .*root element/],
    ['plain text', 'hello', /400 .*outside of root/],
    ['an attribute given twice', '<a b="1" b="2"/>', /400 .*duplicate attribute/],
    ['a character that XML has not', '<a>&#1;</a>', /400 .*character entity/],
    ['XML 1.1, which would have it', '<?xml version="1.1"?><a>&#1;</a>', /400 .*character entity/],
    ['another encoding', '<?xml version="1.0" encoding="iso-8859-1"?><a/>', /415 .*iso-8859-1.*UTF-8/],
    ['bytes that are not UTF-8', Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0x3c]), /400 .*UTF-8/],
    ['half a character at the end', Buffer.from('<a/>ü').subarray(0, 5), /400 .*UTF-8/],
    ['too many elements', `<a>${'<b/>'.repeat(XML_LIMITS.nodes)}</a>`, /400 .*20000 elements/],
    [
      'too many prefixes',
      `<a ${Array.from({ length: 65 }, (_, i) => `xmlns:p${i}="u"`).join(' ')}/>`,
      /400 .*64 namespace/,
    ],
  ])('%s', async (_, body, refusal) => {
    expect(await read(body)).toMatch(refusal);
  });

  test('20 MB, after little more than the limit and without keeping them', async () => {
    let sent = 0;
    const body = (async function* () {
      yield Buffer.from('<a>');
      for (; sent < 20 * MIB; sent += 64 * 1024) yield Buffer.alloc(64 * 1024, 'x');
    })();
    await expect(readXml(body)).rejects.toMatchObject({ status: 413, message: /larger than 1048576 bytes/ });
    expect(sent).toBeLessThanOrEqual(2 * MIB);
  });
});
