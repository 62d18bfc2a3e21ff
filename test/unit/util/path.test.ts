import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  foldName,
  freePath,
  isWithin,
  join,
  keyOf,
  nameOf,
  namesOf,
  numberedPath,
  PathError,
  parentOf,
  pathOf,
  ROOT,
  relocate,
} from '../../../src/util/path.ts';
import { IS_LONG } from '../../support/effort.ts';

/** Valid names. */
const name = fc
  .string({ minLength: 1, maxLength: 12, unit: 'grapheme' })
  .filter((text) => !/[/\0]/.test(text) && text !== '.' && text !== '..' && text.isWellFormed());
const path = fc.array(name, { maxLength: 5 }).map((names) => pathOf(names));

test.each([
  ['/f/plan.txt', '/f/plan (2).txt'],
  ['/plan', '/plan (2)'],
  ['/f/.profile', '/f/.profile (2)'],
  ['/f.d/archive.tar.gz', '/f.d/archive.tar (2).gz'],
])('numberedPath of %s with the number 2 is %s', (from, to) => {
  expect(numberedPath(pathOf(from.slice(1).split('/')), 2)).toBe(to);
});

test('freePath returns the path itself, or the first numbered one that is free', () => {
  const taken = new Set(['/f/a.txt', '/f/a (1).txt']);
  const isFree = (candidate: string) => !taken.has(candidate);
  expect(freePath(pathOf(['f', 'b.txt']), isFree)).toBe('/f/b.txt');
  expect(freePath(pathOf(['f', 'a.txt']), isFree)).toBe('/f/a (2).txt');
});

describe('paths', () => {
  test.each(['', '.', '..', 'a/b', 'a\0b', '\ud800'])('a path with the name %j is refused', (bad) => {
    expect(() => pathOf(['fine', bad])).toThrow(PathError);
    expect(() => join(ROOT, bad)).toThrow(PathError);
  });

  test('a path equals the path of its names', () => {
    fc.assert(
      fc.property(path, (some) => {
        expect(pathOf(namesOf(some))).toBe(some);
      }),
    );
  });

  test('a path joined from a parent and a name has that parent and that name', () => {
    fc.assert(
      fc.property(path, name, (folder, last) => {
        const child = join(folder, last);
        expect(parentOf(child)).toBe(folder);
        expect(nameOf(child)).toBe(last.normalize('NFC'));
      }),
    );
    expect([parentOf(ROOT), nameOf(ROOT), namesOf(ROOT)]).toEqual([ROOT, '', []]);
  });

  test('a path is normalized to NFC', () => {
    expect(pathOf(['A\u0308'])).toBe('/\u00c4');
  });
});

describe('foldName', () => {
  test.each([
    ['README.md', 'readme.MD'],
    ['Äpfel', 'a\u0308PFEL'],
    ['ΣΑΣ', 'σασ'],
    ['ПРИВЕТ', 'привет'],
  ])('the names %j and %j fold to the same name', (one, other) => {
    expect(foldName(one)).toBe(foldName(other));
  });

  test.each([
    ['ΣΑΣ', 'σας'],
    ['İ', 'i'],
    ['straße', 'STRASSE'],
    ['a', 'b'],
  ])('the names %j and %j fold to different names', (one, other) => {
    expect(foldName(one)).not.toBe(foldName(other));
  });

  test('folding twice equals folding once, for every letter and every combination of an upper-case letter and a mark', () => {
    // No character of the planes above has a case or a mark; a long run shows that.
    const characters = Array.from({ length: IS_LONG ? 0x110000 : 0x20000 }, (_, code) => code)
      .filter((code) => code < 0xd800 || code > 0xdfff)
      .map((code) => String.fromCodePoint(code));
    // Only marks that occur in decomposed letters can combine with a letter to another one.
    const marks = [...new Set(characters.flatMap((one) => [...one.normalize('NFD')].slice(1)))];
    const upper = characters.filter((one) => one.toLowerCase() !== one);
    const wrong = (some: string) => foldName(foldName(some)) !== foldName(some);
    expect(characters.filter(wrong)).toEqual([]);
    expect(marks.length * upper.length).toBeGreaterThan(50_000);
    expect(
      upper.flatMap((letter) => marks.filter((mark) => wrong(letter + mark)).map((mark) => letter + mark)),
    ).toEqual([]);
  });

  test('folding random names twice equals folding once', () => {
    fc.assert(
      fc.property(name, (some) => {
        expect(foldName(foldName(some))).toBe(foldName(some));
      }),
    );
  });
});

describe('isWithin', () => {
  test.each([
    [['a'], ['a'], true],
    [['A', 'b'], ['a'], true],
    [['ab'], ['a'], false],
    [['a'], ['a', 'b'], false],
    [['a'], [], true],
  ])('isWithin(%j, %j) is %s', (inner, outer, expected) => {
    expect(isWithin(pathOf(inner), pathOf(outer))).toBe(expected);
  });
});

test('relocate keeps the names below, and relocating back restores the path', () => {
  fc.assert(
    fc.property(path, path, fc.array(name, { maxLength: 3 }), (from, to, below) => {
      const inner = pathOf([...namesOf(from), ...below]);
      const moved = relocate(inner, from, to);
      expect(keyOf(moved)).toBe(keyOf(pathOf([...namesOf(to), ...below])));
      expect(relocate(moved, to, from)).toBe(inner);
    }),
  );
});
