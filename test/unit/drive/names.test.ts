import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAPPED_NAMES } from '../../../src/api/wire-names.ts';
import {
  isWaiting,
  isWithinLitter,
  isWithinWaiting,
  MAY_BE_SPECIAL,
  nameBefore,
  waitingName,
} from '../../../src/drive/names.ts';
import { pathOf } from '../../../src/util/path.ts';

/** Names of desktop systems, which the service compares without regard to case. */
const FOLDED = ['.DS_Store', '.Spotlight-V100', 'Icon\r', 'Thumbs.db', 'ehthumbs.db', 'desktop.ini'].flatMap(
  (name) => [name, name.toUpperCase(), name.toLowerCase(), name.replace(/k/i, '\u212a')],
);

test.each([...FOLDED, '._a', '~$a.docx', '.~lock.a#', waitingName('1', 'a')])(
  'a path with %j among its names is looked at closely',
  (name) => {
    const path = pathOf(['a', name, 'b']);
    expect(isWithinLitter(path) || isWithinWaiting(path)).toBe(true);
    expect(MAY_BE_SPECIAL.test(path)).toBe(true);
  },
);

test.each(['/', '/a', '/Iconic/thumbs', '/my desktop.ini/a.~lock'])(
  'the path %j needs no closer look',
  (path) => {
    expect(MAY_BE_SPECIAL.test(path)).toBe(false);
  },
);

const NAME = fc
  .oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 255 }),
    fc.string({
      unit: fc.constantFrom('\\', '\u201b', '\u2420', ' ', '.', '~', '\u{1F600}'),
      minLength: 1,
      maxLength: 255,
    }),
  )
  .map((name) => name.replaceAll(/[/\0]/g, '_'))
  .filter((name) => name !== '.' && name !== '..');

test('a hidden name is never too long for the service, and says the name of its entry or the end of it', () => {
  fc.assert(
    fc.property(NAME, (name) => {
      const hidden = waitingName(`${randomUUID()}.${randomUUID()}`, name);
      expect(isWaiting(hidden)).toBe(true);
      const lengths = MAPPED_NAMES.toWire(hidden).map((part) => part.length);
      expect(lengths).toEqual([expect.toSatisfy((length: number) => length <= 255)]);
      const before = nameBefore(hidden);
      expect(before === undefined ? 'nothing' : name.slice(-before.length)).toBe(before);
      if ([...name].length <= 80) expect(before).toBe(name);
    }),
  );
});

test.each(['.davgate-waiting-1', '.davgate-waiting-1~', '.davgate-waiting-1~.', '.davgate-waiting-1~..'])(
  'the hidden name %j says no name',
  (hidden) => {
    expect(nameBefore(hidden)).toBeUndefined();
  },
);
