import { describe, expect, test } from 'vitest';
import { childrenOf, textOf, type XmlElement } from '../../../../src/dav/xml/xml-element.ts';
import { XML_LIMITS, XmlReader } from '../../../../src/dav/xml/xml-reader.ts';

const MIB = 1024 * 1024;

/** Returns the text of `body`, or the status and message of its refusal. */
async function read(body: string | Uint8Array) {
  return new XmlReader().read(Buffer.from(body)).then(
    (root) => root && textOf(root),
    (error) => `${error.status} ${error.message}`,
  );
}

/** Returns the body of a request that arrives in these pieces. */
function arriving(pieces: AsyncIterable<Uint8Array>) {
  return { body: () => pieces, bodyHere: async () => undefined };
}

describe('accepted documents', () => {
  test('an empty body has no root element', async () => {
    expect(await new XmlReader().read(new Uint8Array(0))).toBeUndefined();
  });

  test('names of elements and attributes are resolved to namespaces', async () => {
    const root = await new XmlReader().read(
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

  test('text, CDATA and the five predefined entities are read as text', async () => {
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
  ])('a document in %s is decoded', async (_, body) => {
    expect(await read(body)).toBe('ü€😀');
  });

  test('a body that arrives byte by byte is decoded', async () => {
    const bytes = Buffer.from('\ufeff<a>ü€😀</a>');
    const pieces = async function* () {
      for (const byte of bytes) yield Uint8Array.of(byte);
    };
    const root = await new XmlReader().read(arriving(pieces()));
    expect(root && textOf(root)).toBe('ü€😀');
  });
});

describe('refused documents', () => {
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
    ['an entity named like a property of Object', '<a>&constructor;</a>', /400 .*undefined entity/],
    ['10,000 nested elements', '<a>'.repeat(10_000), /400 .*deeper than 64/],
    [
      'an empty namespace for a prefix (litmus propfind_invalid2)',
      '<a xmlns:x=""/>',
      /400 .*undefine prefix/,
    ],
    ['a prefix that is not bound', '<x:a/>', /400 .*unbound namespace prefix: "x"/],
    ['a missing end tag (litmus propfind_invalid)', '<a><b>', /400 .*unclosed tag: b/],
    ['two roots', '<a/><b/>', /400 .*only one root/],
    ['no root', '  \r\n', /400 .*root element/],
    ['plain text', 'hello', /400 .*outside of root/],
    ['an attribute given twice', '<a b="1" b="2"/>', /400 .*duplicate attribute/],
    ['a character that XML does not allow', '<a>&#1;</a>', /400 .*character entity/],
    ['a character that only XML 1.1 allows', '<?xml version="1.1"?><a>&#1;</a>', /400 .*character entity/],
    ['another encoding', '<?xml version="1.0" encoding="iso-8859-1"?><a/>', /415 .*iso-8859-1.*UTF-8/],
    ['bytes that are not UTF-8', Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0x3c]), /400 .*UTF-8/],
    ['half a character at the end', Buffer.from('<a/>ü').subarray(0, 5), /400 .*UTF-8/],
    ['too many elements', `<a>${'<b/>'.repeat(XML_LIMITS.nodes)}</a>`, /400 .*20000 elements/],
    [
      'too many prefixes',
      `<a ${Array.from({ length: 65 }, (_, i) => `xmlns:p${i}="u"`).join(' ')}/>`,
      /400 .*64 namespace/,
    ],
    [
      'a long namespace',
      `<a xmlns:p="${'u'.repeat(1001)}"/>`,
      /400 .*namespace of more than 1000 characters/,
    ],
  ])('a document with %s is refused with the reason', async (_, body, refusal) => {
    expect(await read(body)).toMatch(refusal);
  });

  test('a body of 20 MB is refused with 413 after at most 2 MiB have been read', async () => {
    let sent = 0;
    const body = (async function* () {
      yield Buffer.from('<a>');
      for (; sent < 20 * MIB; sent += 64 * 1024) yield Buffer.alloc(64 * 1024, 'x');
    })();
    await expect(new XmlReader().read(arriving(body))).rejects.toMatchObject({
      status: 413,
      message: /larger than 1048576 bytes/,
    });
    expect(sent).toBeLessThanOrEqual(2 * MIB);
  });
});

describe('cost of a body', () => {
  /** Returns the number of namespace bindings stored in `element` and below it, counting each scope once. */
  function bindingCount(element: XmlElement, seen = new Set<unknown>()): number {
    const own = seen.has(element.scope) ? 0 : element.scope.own.size;
    seen.add(element.scope);
    return childrenOf(element).reduce((sum, child) => sum + bindingCount(child, seen), own);
  }

  test('an element stores its own namespace declarations only', async () => {
    const around = Array.from({ length: 60 }, (_, index) => `xmlns:p${index}="u"`).join(' ');
    const root = await new XmlReader().read(
      Buffer.from(`<r ${around}>${'<a xmlns:b="c"><d/></a>'.repeat(4_000)}</r>`),
    );
    expect(root && bindingCount(root)).toBe(60 + 4_000);
    const [first] = root ? childrenOf(root) : [];
    expect(first?.scope.get('p59')).toBe('u');
    expect(first?.scope.get('b')).toBe('c');
    expect(first?.scope.get('none')).toBeUndefined();
    expect(first?.scope.size).toBe(61);
  });

  const large = () => Buffer.from(`<a>${' '.repeat(64 * 1024)}</a>`);

  test('bodies above 64 KiB are parsed one at a time, also after a refused one', async () => {
    let parsing = 0;
    const seen: number[] = [];
    const reader = new XmlReader(async () => {
      parsing += 1;
      seen.push(parsing);
      await new Promise((resolve) => setImmediate(resolve));
      parsing -= 1;
      if (seen.length === 2) throw new Error('refused');
      return undefined;
    });
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => reader.read(large())));
    expect(seen).toEqual([1, 1, 1, 1, 1]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      ...['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
    ]);
  });

  test('small bodies and slow clients do not delay other bodies', async () => {
    const reader = new XmlReader();
    const slow = (async function* () {
      yield large();
      await new Promise(() => {});
    })();
    void reader.read(arriving(slow));
    expect(await reader.read(large())).toMatchObject({ name: 'a' });
    expect(await reader.read(Buffer.from('<b/>'))).toMatchObject({ name: 'b' });
  });

  test('parsing a large body yields to other work', async () => {
    let turns = 0;
    let isParsing = true;
    const count = () => {
      turns += 1;
      if (isParsing) setImmediate(count);
    };
    setImmediate(count);
    await new XmlReader().read(Buffer.from(`<a>${' '.repeat(900 * 1024)}</a>`));
    isParsing = false;
    expect(turns).toBeGreaterThan(10);
  });
});
