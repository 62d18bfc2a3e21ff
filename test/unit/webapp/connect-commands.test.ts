import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mountCommands } from '../../../src/webapp/connect-commands.ts';
import { PROJECT_ROOT } from '../../support/build.ts';

const DOCUMENTED = { url: 'http://127.0.0.1:8765/', user: 'davgate' };

function guide(name: string): string {
  return readFileSync(join(PROJECT_ROOT, 'docs/mount', `${name}.md`), 'utf8');
}

test('the commands of the web application are those of the guides', () => {
  const { windowsOnce, netUse, macMount, gnome, dolphin, gioMount, davfs, rclone } =
    mountCommands(DOCUMENTED);
  for (const text of [windowsOnce, netUse]) expect(guide('windows')).toContain(`\n${text}\n`);
  expect(guide('macos')).toContain(`\n${macMount}\n`);
  for (const text of [gioMount, davfs, rclone]) expect(guide('linux')).toContain(`\n${text}\n`);
  expect(guide('linux')).toContain(`\`${gnome}\``);
  expect(dolphin).toBe('webdav://127.0.0.1:8765/');
});

test('with https Windows is not told to log in over http, and other programs use the secure schemes', () => {
  const commands = mountCommands({ url: 'https://drive.example.com/', user: 'ann' });
  expect(commands.windowsOnce).not.toContain('BasicAuthLevel');
  expect([commands.gnome, commands.dolphin]).toEqual([
    'davs://drive.example.com/',
    'webdavs://drive.example.com/',
  ]);
});

test('a name with spaces or quotes is one word of each command', () => {
  const { netUse, rclone } = mountCommands({ url: 'https://drive.example.com/', user: "Ann O'Neill" });
  expect(netUse).toBe(`net use * https://drive.example.com/ "/user:Ann O'Neill"`);
  expect(rclone).toContain(`user='Ann O'\\''Neill' pass=PASSWORD`);
});

test('a drive without a login needs no user in its commands', () => {
  const { netUse, rclone } = mountCommands({ url: 'http://127.0.0.1:8765/', user: undefined });
  expect(netUse).toBe('net use * http://127.0.0.1:8765/');
  expect(rclone).not.toMatch(/user=|pass=/);
});
