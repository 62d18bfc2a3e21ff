import { expect, test } from 'vitest';
import { isWithinLitter, isWithinWaiting, MAY_BE_SPECIAL, waitingName } from '../../../src/drive/names.ts';
import { pathOf } from '../../../src/util/path.ts';

/** Names of desktop systems, which the service compares without regard to case. */
const FOLDED = ['.DS_Store', '.Spotlight-V100', 'Icon\r', 'Thumbs.db', 'ehthumbs.db', 'desktop.ini'].flatMap(
  (name) => [name, name.toUpperCase(), name.toLowerCase(), name.replace(/k/i, '\u212a')],
);

test.each([...FOLDED, '._a', '~$a.docx', '.~lock.a#', waitingName('1')])(
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
