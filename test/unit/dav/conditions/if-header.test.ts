import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type IfHeader,
  matchesIfHeader,
  parseIfHeader,
  tokensIn,
} from '../../../../src/dav/conditions/if-header.ts';
import { DavError } from '../../../../src/dav/errors.ts';
import { pathOf } from '../../../../src/util/path.ts';

/** Renders one line for each list: `resource: not token <t>, tag "e"`. */
function shown(header: IfHeader): string[] {
  return header.map(({ resource, conditions }) => {
    const parts = conditions.map(({ not, kind, value }) => `${not ? 'not ' : ''}${kind} ${value}`);
    return `${resource ?? 'here'}: ${parts.join(', ')}`;
  });
}

describe('the If header', () => {
  test.each([
    ['(<urn:uuid:1>)', ['here: token urn:uuid:1']],
    ['(<urn:1> ["e"])', ['here: token urn:1, tag "e"']],
    ['(<urn:1>["e"])(<urn:2>)', ['here: token urn:1, tag "e"', 'here: token urn:2']],
    ['( Not <urn:1> not ["e"] )', ['here: not token urn:1, not tag "e"']],
    ['(NOT<DAV:no-lock>)', ['here: not token DAV:no-lock']],
    ['(["a b]c)"])', ['here: tag "a b]c)"']],
    ['([W/"e"])', ['here: tag W/"e"']],
    ['([ "e" ])', ['here: tag "e"']],
    ['([e])', ['here: tag ']],
    ['([*])', ['here: tag ']],
    ['</a> (<urn:1>) (<urn:2>)', ['/a: token urn:1', '/a: token urn:2']],
    ['<http://x/a>(<urn:1>)<http://x/b>(["e"])', ['http://x/a: token urn:1', 'http://x/b: tag "e"']],
    // Two header lines, as Finder sends them with two locks.
    ['(<urn:1>), (<urn:2>)', ['here: token urn:1', 'here: token urn:2']],
    ['(<urn:1>), </b> (<urn:2>)', ['here: token urn:1', '/b: token urn:2']],
    ['</a>, (<urn:1>)', ['/a: token urn:1']],
  ])('the If header %j parses as %j', (text, lists) => {
    expect(shown(parseIfHeader(text))).toEqual(lists);
  });

  test.each([
    '',
    ' , ',
    '()',
    '(',
    ')',
    '(<urn:1>',
    '<urn:1>',
    'urn:1',
    '(urn:1)',
    '</a>',
    '</a> </b> (<urn:1>)',
    '(<>)',
    '(<a b>)',
    '(Not)',
    '(Not Not <urn:1>)',
    '(<urn:1>) x',
    '(["e)',
    `(${'<urn:1>'.repeat(501)})`,
  ])('the malformed If header %j answers 400', (text) => {
    expect(() => parseIfHeader(text)).toThrow(DavError);
    expect(() => parseIfHeader(text)).toThrow(/\bIf\b/);
  });

  test('an If header submits every token in it', () => {
    const header = parseIfHeader('(<urn:1> ["e"]) (Not <DAV:no-lock>) </b> (<urn:2>)');
    expect([...tokensIn(header)].sort()).toEqual(['DAV:no-lock', 'urn:1', 'urn:2']);
  });

  const lists = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => `</${from + index}> (<urn:1>)`).join(' ');
  const here = { path: pathOf(['a']), destination: undefined, prefix: '' };

  test('an If header may name 64 resources, and one of them again', async () => {
    let loads = 0;
    const load = async () => {
      loads += 1;
      return { tokens: new Set<string>(), hasTag: () => false };
    };
    const header = parseIfHeader(`${lists(0, 64)} ${lists(5, 6)}`);
    expect([await matchesIfHeader(header, here, load), loads]).toEqual([false, 64]);
  });

  test('an If header that names 65 resources answers 400, and begins no lookup that nobody waits for', async () => {
    let loads = 0;
    const load = async () => {
      loads += 1;
      if (loads > 64) throw new Error('nobody handles this');
      return { tokens: new Set<string>(), hasTag: () => false };
    };
    const refused = matchesIfHeader(parseIfHeader(lists(0, 65)), here, load);
    await expect(refused).rejects.toThrow('more than 64 resources');
    expect(loads).toBe(64);
  });

  test('any If header is parsed or refused quickly', () => {
    const pieces = fc.constantFrom('(', ')', '<', '>', '[', ']', '"', 'Not ', ' ', ',', 'a', '/b', 'W/');
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (some) => {
        try {
          expect(parseIfHeader(some.join('')).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(DavError);
        }
      }),
    );
    for (const flood of ['(', '<', '[', '(Not ', '("', ',', ' ', '(<a>', '(['])
      expect(() => parseIfHeader(flood.repeat(16_000))).toThrow(DavError);
  });
});
