import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { XmlElement } from '../../../../src/dav/xml/xml-element.ts';
import { anyCharacter } from '../../../support/characters.ts';
import { effort } from '../../../support/effort.ts';
import { startPropertyServer } from '../../../support/property-server.ts';

interface Tree {
  readonly namespace: string;
  readonly prefix: string;
  readonly name: string;
  readonly attributes: readonly (readonly [namespace: string, name: string, value: string])[];
  readonly content: readonly (Tree | string)[];
}

const ILLEGAL = /[^\P{Cc}\t\n\r\x7f-\x9f]|[\ufffe\uffff]/gu;
const namespace = fc.constantFrom('', 'DAV:', 'urn:a', 'http://b/?x=1&y="2"<>', 'urn:ü😀');
const prefix = fc.constantFrom('', 'a', 'b', 'D', 'x0');
const name = fc.constantFrom('p', 'prop', 'Näme', 'a-b.c', '_1', 'href');
const text = fc
  .oneof(
    fc.string({ unit: anyCharacter, maxLength: 30 }),
    fc.string({ unit: fc.constantFrom(...'<>&"\' \t\n\r]', ']]>', 'a:b', '😀') }),
  )
  .map((value) => value.replace(ILLEGAL, ''));
const attributes = fc.uniqueArray(fc.tuple(namespace, name, text), {
  maxLength: 3,
  selector: ([space, local]) => `${space} ${local}`,
});

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.record({
    namespace,
    prefix,
    name,
    attributes,
    content: fc.array(fc.oneof({ depthSize: 'small' }, text, tie('tree')), { maxLength: 4 }),
  }),
}));

/** Renders `tree` with a namespace declaration on every element, so that prefixes change their meaning. */
function write({ namespace: space, prefix: wanted, name: local, attributes: all, content }: Tree): string {
  const used = space === '' ? '' : wanted;
  const tag = used === '' ? local : `${used}:${local}`;
  const declared = used === '' ? `xmlns="${escaped(space)}"` : `xmlns:${used}="${escaped(space)}"`;
  const written = all.map(([attributeSpace, attribute, value], index) =>
    attributeSpace === ''
      ? ` ${attribute}="${escaped(value)}"`
      : ` xmlns:n${index}="${escaped(attributeSpace)}" n${index}:${attribute}="${escaped(value)}"`,
  );
  const inside = content.map((node) => (typeof node === 'string' ? escaped(node) : write(node))).join('');
  return `<${tag} ${declared}${written.join('')}>${inside}</${tag}>`;
}

function escaped(value: string): string {
  return value.replace(/[<>&"\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The parts of an element that RFC 4918 §4.3 preserves, in one form for stored and shown elements. */
type Kept = readonly [string, string, readonly string[], readonly (Kept | string)[]];

function keptOf(element: Tree | XmlElement): Kept {
  const all = element.attributes.map((attribute) =>
    'value' in attribute
      ? JSON.stringify([attribute.namespace, attribute.name, attribute.value])
      : JSON.stringify(attribute),
  );
  const content: (Kept | string)[] = [];
  for (const node of element.content) {
    const last = content.at(-1);
    if (typeof node !== 'string') content.push(keptOf(node));
    else if (typeof last === 'string') content[content.length - 1] = last + node;
    else if (node !== '') content.push(node);
  }
  return [element.namespace, element.name, all.sort(), content];
}

test('any dead property is shown as it was stored', async () => {
  const server = await startPropertyServer();
  await server.file('/a.txt');
  const property = fc.tuple(tree, fc.constantFrom('', 'urn:a', 'urn:b')).map(([value, space]) => {
    return { ...value, namespace: space, name: 'value' };
  });
  await fc.assert(
    fc.asyncProperty(property, async (sent) => {
      const xml = write(sent);
      const body = `<D:propertyupdate xmlns:D="DAV:" xmlns:a="urn:outer" xmlns="urn:default"><D:set><D:prop>${xml}</D:prop></D:set></D:propertyupdate>`;
      expect((await server.send('PROPPATCH', '/a.txt', body)).rows[0]?.statuses).toEqual(['HTTP/1.1 200 OK']);
      const asked = `<propfind xmlns="DAV:"><prop><value xmlns="${sent.namespace}"/></prop></propfind>`;
      const [row] = (await server.send('PROPFIND', '/a.txt', asked, { Depth: '0' })).rows;
      const shown = row?.properties.get(`{${sent.namespace}}value`);
      expect(shown && keptOf(shown.element)).toEqual(keptOf(sent));
    }),
    { numRuns: effort(40) },
  );
});
