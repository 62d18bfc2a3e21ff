import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endingOf, extensionOf, numberedName, splitName } from '../../../src/util/file-name.ts';

test.each([
  ['plan.txt', 'plan', '.txt'],
  ['archive.tar.GZ', 'archive.tar', '.GZ'],
  ['plan', 'plan', ''],
  ['.bashrc', '.bashrc', ''],
  ['.config.json', '.config', '.json'],
  ['..a', '.', '.a'],
  ['end.', 'end', '.'],
  ['', '', ''],
])('splitName of %j has the stem %j and the extension %j', (name, stem, extension) => {
  expect(splitName(name)).toEqual({ stem, extension });
});

test('splitName counts an extension to the stem when it is longer, with its dot, than the limit', () => {
  expect(splitName('a.1234', 5)).toEqual({ stem: 'a', extension: '.1234' });
  expect(splitName('a.12345', 5)).toEqual({ stem: 'a.12345', extension: '' });
});

test('the parts of splitName are the name again when joined', () => {
  const limit = fc.oneof(fc.nat(10), fc.constant(undefined));
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('.', 'a', ' ', '😀') }), limit, (name, lengthMax) => {
      const { stem, extension } = splitName(name, lengthMax);
      expect(stem + extension).toBe(name);
    }),
  );
});

test.each([
  ['plan.txt', 'plan (2).txt'],
  ['plan', 'plan (2)'],
  ['.profile', '.profile (2)'],
])('numberedName of %s with the number 2 is %s', (name, numbered) => {
  expect(numberedName(name, 2)).toBe(numbered);
});

test.each([
  ['A.PNG', 'png', 'png'],
  ['archive.tar.gz', 'gz', 'gz'],
  ['.png', '', 'png'],
  ['zip', '', ''],
  ['end.', '', ''],
  ['', '', ''],
])('extensionOf %j is %j, endingOf is %j', (name, extension, ending) => {
  expect(extensionOf(name)).toBe(extension);
  expect(endingOf(name)).toBe(ending);
});
