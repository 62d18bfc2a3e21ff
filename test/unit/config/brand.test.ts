import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { contrastOf } from '../../../src/util/colour.ts';
import { temporaryDirectory } from '../../support/program.ts';
import { settingsOfArguments } from '../../support/settings.ts';

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  home = await temporaryDirectory();
});
afterAll(() => home.remove());

const brandOf = (...args: string[]) =>
  resolveConfig(settingsOfArguments(['--data-dir', home.path, ...args]), undefined, {}, '/nowhere').brand;

function fileWith(name: string, content: string | Buffer): string {
  const path = join(home.path, name);
  writeFileSync(path, content);
  return path;
}

test('without settings the pages have davgate’s own look', () => {
  expect(brandOf()).toBeUndefined();
});

test.each([
  [
    'an SVG file',
    '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>',
    'data:image/svg+xml;base64,',
  ],
  ['a PNG file', Buffer.from('89504e470d0a1a0a00', 'hex'), 'data:image/png;base64,'],
])('the logo is %s, as a data URL', (_, content, start) => {
  const logo = brandOf('--brand-logo', fileWith('logo', content))?.logo ?? '';
  expect(logo.startsWith(start)).toBe(true);
  expect(Buffer.from(logo.slice(start.length), 'base64')).toEqual(Buffer.from(content));
});

describe('refused', () => {
  test.each([
    ['a name of 61 characters', ['--brand-name', 'x'.repeat(61)], '--brand-name: too long'],
    ['a logo that is missing', ['--brand-logo', '/nowhere/logo.svg'], 'there is no such file'],
    ['a folder as a logo', ['--brand-logo', '/'], 'cannot be read (EISDIR)'],
    ['a word for a colour', ['--brand-colour', 'red'], 'red is no colour; write it like #1f5fd6'],
    ['a colour of three digits', ['--brand-colour', '#123'], '#123 is no colour'],
    ['a light colour', ['--brand-colour', '#ffcc00'], 'white text on #ffcc00 is hard to read'],
  ])('%s is refused with the reason', (_, args, reason) => {
    expect(() => brandOf(...args)).toThrow(reason);
  });

  test('a logo of another kind, or larger than 100 KiB, is refused with the file', () => {
    const jpeg = fileWith('logo.jpg', Buffer.from('ffd8ffe0', 'hex'));
    expect(() => brandOf('--brand-logo', jpeg)).toThrow(`${jpeg} is neither SVG nor PNG`);
    const long = fileWith('long.svg', `<svg ${' '.repeat(100 * 1024)}/>`);
    expect(() => brandOf('--brand-logo', long)).toThrow('give one of at most 102400');
  });
});

test.each(['#7a0019', '#00563f', '#4b0082', '#000000', '#1f5fd6'])(
  'the colour %s is lightened where the browser is dark, until text of it can be read on all grounds',
  (colour) => {
    const rules = brandOf('--brand-colour', colour)?.accentStyle ?? '';
    const [light, dark = ''] = [...rules.matchAll(/--accent: (#[0-9a-f]{6})/g)].map(([, accent]) => accent);
    expect(light).toBe(colour);
    for (const ground of ['#11151b', '#1b2029', '#23344f', '#0d1420'])
      expect(contrastOf(dark, ground)).toBeGreaterThanOrEqual(4.5);
  },
);
