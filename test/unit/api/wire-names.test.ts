import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAPPED_NAMES } from '../../../src/api/wire-names.ts';
import { foldName } from '../../../src/util/path.ts';

/** Returns the name at the service; with a slash between the parts of a long one. */
function toWire(name: string): string {
  return MAPPED_NAMES.toWire(name).join('/');
}

function fromWire(wire: string): string {
  return MAPPED_NAMES.fromWire(wire.split('/')).join('/');
}

/** Characters that mean something in a mapped name, and some that do not. */
const CHARACTERS = [
  '\\',
  '\x7f',
  ' ',
  '\uff3c',
  '\u2421',
  '\u2420',
  '\u201b',
  'a',
  'B',
  '.',
  'é',
  '😀',
  '\n',
];
const RESERVED = [
  '.dropbox',
  '.dropbox.attr',
  '.Dropbox.cache',
  'desktop.ini',
  'Thumbs.db',
  '.DS_Store',
  'Icon\r',
];
/** Folds to itself, although a regular expression that ignores case takes it for the reserved name. */
const LONG_S = 'thumbſ.db';
const names = fc.oneof(
  fc.array(fc.constantFrom(...CHARACTERS), { minLength: 1, maxLength: 8 }).map((all) => all.join('')),
  fc
    .tuple(fc.nat(3), fc.constantFrom(...RESERVED, LONG_S))
    .map(([count, name]) => '\u201b'.repeat(count) + name),
);

/** Whether the service takes a name (service-api.md §9.1). */
function isTaken(name: string): boolean {
  return !/[\\\x7f]| $/.test(name) && !RESERVED.some((one) => foldName(one) === foldName(name));
}

describe('a name at the service', () => {
  test.each([
    ['plain.txt', 'plain.txt'],
    ['back\\slash', 'back＼slash'],
    ['trailing ', 'trailing␠'],
    ['two blanks  ', 'two blanks ␠'],
    ['a b', 'a b'],
    ['del\x7f', 'del␡'],
    ['full＼width', 'full‛＼width'],
    ['‛＼', '‛‛‛＼'],
    ['‛\\', '‛‛＼'],
    ['a quote ‛ alone', 'a quote ‛ alone'],
    ['␠ first', '␠ first'],
    ['last ␠', 'last ‛␠'],
    ['.dropbox', '‛.dropbox'],
    ['.DropBox.Cache', '‛.DropBox.Cache'],
    ['‛.dropbox', '‛‛.dropbox'],
    ['.dropbox2', '.dropbox2'],
    [LONG_S, LONG_S],
  ])('for %j is %j, and maps back to it', (name, wire) => {
    expect(toWire(name)).toBe(wire);
    expect(fromWire(wire)).toBe(name);
  });

  test('is made in one pass, however many quotes the name has', () => {
    const quotes = '\u201b'.repeat(500_000);
    expect(toWire(quotes)).toBe(quotes);
    expect(fromWire(quotes)).toBe(quotes);
  });

  test('is one that the service takes, and maps back to the same name, whatever the name is', () => {
    fc.assert(
      fc.property(names, (name) => {
        expect(isTaken(toWire(name)), toWire(name)).toBe(true);
        expect(fromWire(toWire(name))).toBe(name);
      }),
      { numRuns: 20_000 },
    );
  });

  test('belongs to exactly one name in the drive, also when another program chose it', () => {
    fc.assert(
      fc.property(names.filter(isTaken), (wire) => {
        expect(toWire(fromWire(wire))).toBe(wire);
      }),
      { numRuns: 20_000 },
    );
  });

  test('differs by more than letter case exactly when the names do', () => {
    fc.assert(
      fc.property(names, names, (one, other) => {
        expect(foldName(toWire(one)) === foldName(toWire(other))).toBe(foldName(one) === foldName(other));
      }),
      { numRuns: 20_000 },
    );
  });
});
