import { expect, test } from 'vitest';
import { mountHelp } from '../../../src/cli/mount-help.ts';

const lineFor = (system: string, url: string, name = 'ann') =>
  mountHelp({ url, login: { name } })
    .split('\n')
    .find((line) => line.trim().startsWith(system));

test('Explorer’s hurdle of plain http is named for plain http alone', () => {
  expect(lineFor('Windows', 'http://127.0.0.1:8765/')).toContain('README, "Windows"');
  expect(lineFor('Windows', 'https://127.0.0.1:8765/')).toBe(
    '  Windows  net use * https://127.0.0.1:8765/ /user:ann',
  );
  expect(lineFor('GNOME', 'https://127.0.0.1:8765/')).toContain('davs://127.0.0.1:8765/');
});

test('a name with a space is one word to each shell', () => {
  expect(lineFor('Windows', 'https://127.0.0.1:8765/', 'ann lee')).toContain('"/user:ann lee"');
  expect(lineFor('rclone', 'https://127.0.0.1:8765/', "ann o'lee")).toContain(
    `--webdav-user 'ann o'\\''lee'`,
  );
});
