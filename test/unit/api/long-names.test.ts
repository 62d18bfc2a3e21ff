import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isPart, partsOf, wholeNames } from '../../../src/api/long-names.ts';
import { foldName, PathError } from '../../../src/util/path.ts';

const MARK = '\u2417';
const QUOTE = '\u201b';

/** Pieces that mean something in a name in parts, or are measured in another way than others, and some plain ones. */
const PIECES = [
  MARK,
  QUOTE,
  'a',
  'B',
  ' ',
  '.',
  'é',
  'ß',
  '\u0327\u0301',
  'J\u030c',
  'ǰ',
  '한',
  '😀',
  '𐐀',
  'a'.repeat(30),
  '한'.repeat(20),
  QUOTE.repeat(9),
];

const NAME = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 120, size: 'max' })
  .chain((pieces) => fc.constantFrom('', MARK, QUOTE + MARK).map((end) => pieces.join('') + end))
  .map((name) => name.normalize('NFC'))
  .filter((name) => name !== '.' && name !== '..');

/** A name and the same in other letter case, as the service compares names. */
const SAME_NAMES = NAME.chain((name) =>
  fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }).map((isUpper): [string, string] => {
    const cases = Array.from(name, (character, at) =>
      isUpper[at % isUpper.length] ? character.toUpperCase() : character.toLowerCase(),
    );
    return [name, cases.join('').normalize('NFC')];
  }),
).filter(([name, other]) => foldName(name) === foldName(other));

/** A name that the service takes, often in parts that belong together. */
const AT_SERVICE = NAME.chain((name) => fc.constantFrom(...partsOf(name))).filter(
  (name) => name.length <= 255,
);

const RUNS = { numRuns: 5_000 };

describe('the parts of a name', () => {
  test('are the name itself when the service takes it', () => {
    for (const name of ['plain.txt', 'a'.repeat(255), `short${MARK}`, `${'a'.repeat(150)}${MARK}`, MARK])
      expect(partsOf(name)).toEqual([name]);
  });

  test('are as long as the service takes them, and say which of them go on', () => {
    expect(partsOf(`${'a'.repeat(250)}${'b'.repeat(250)}cc`)).toEqual([
      `${'a'.repeat(250)}${MARK}`,
      `${MARK}${'b'.repeat(250)}${MARK}`,
      `${MARK}cc`,
    ]);
  });

  test('are names that the service takes, and stand for the same name, whatever the name is', () => {
    fc.assert(
      fc.property(NAME, (name) => {
        const parts = partsOf(name);
        expect(wholeNames(parts)).toEqual([name]);
        expect(parts.map(isPart)).toEqual(parts.map((_, at) => at < parts.length - 1));
        if (foldName(name).length <= 255) return;
        expect(parts.filter((part) => part.length > 255)).toEqual([]);
        expect(parts.filter((part) => part !== part.normalize('NFC'))).toEqual([]);
      }),
      RUNS,
    );
  });

  test('are the same for names that differ by letter case only', () => {
    fc.assert(
      fc.property(SAME_NAMES, ([name, other]) => {
        expect(partsOf(other).map(foldName)).toEqual(partsOf(name).map(foldName));
      }),
      RUNS,
    );
  });

  test('are the name itself when it cannot be cut, so that the service refuses it', () => {
    for (const name of [`e${'\u0316'.repeat(300)}`, QUOTE.repeat(300)]) expect(partsOf(name)).toEqual([name]);
  });

  test('are made in one pass, however long the name is', () => {
    const name = QUOTE.repeat(200_000) + MARK;
    expect(partsOf(name)).toEqual([name]);
    expect(wholeNames(partsOf('a'.repeat(200_000)))).toEqual(['a'.repeat(200_000)]);
  });
});

describe('names at the service', () => {
  test('that no davgate wrote stand for themselves, or are refused: no two stand for one name', () => {
    fc.assert(
      fc.property(AT_SERVICE, fc.array(AT_SERVICE, { maxLength: 2 }), (first, more) => {
        const names = [first, ...more];
        let whole: readonly string[];
        try {
          whole = wholeNames(names);
        } catch (error) {
          expect(error).toBeInstanceOf(PathError);
          return;
        }
        expect(whole.flatMap(partsOf)).toEqual(names);
      }),
      RUNS,
    );
  });

  test('in a folder that is a part of names are refused unless they go on with it', () => {
    const part = `${'a'.repeat(250)}${MARK}`;
    for (const name of ['file.txt', 'b', `${MARK}`, `${'b'.repeat(250)}${MARK}`])
      expect(() => wholeNames(['folder', part, name]), name).toThrow(PathError);
    expect(wholeNames(['folder', part, `${MARK}123456`, 'below'])).toEqual([
      'folder',
      `${'a'.repeat(250)}123456`,
      'below',
    ]);
  });
});
