import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { type DesktopSession, startDesktopSession } from '../support/desktop-session.ts';
import { effort } from '../support/effort.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { temporaryDirectory } from '../support/program.ts';

// KIO is what Dolphin and other programs of KDE reach drives with. `kioclient5` is its command.

const LARGE = pseudoRandomBytes(effort(10) * 2 ** 20 + 1, 12);
const NAMES = [...ODD_NAMES, `#?%41 ü & '`, 'party 🎉'];

let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let folder: ClientFolder;
let session: DesktopSession;

beforeAll(async () => {
  [local, folder] = await Promise.all([temporaryDirectory(), clientFolder('kio')]);
  // A wallet would ask for its password in a window.
  await mkdir(join(local.path, '.config'));
  await writeFile(join(local.path, '.config', 'kwalletrc'), '[Wallet]\nEnabled=false\n');
  session = await startDesktopSession(local.path);
});
afterAll(async () => {
  await session?.end();
  await local.remove();
});

/** Returns KIO's address of a file in the folder. */
function dav(path: string): string {
  return folder.at(path).replace('http://', `webdav://${folder.user}:${folder.password}@`);
}

/**
 * Runs `kioclient5` and returns what it writes. Without `--overwrite` it first asks davgate whether the target exists, and then
 * does not use the password of the address again.
 */
async function kio(command: string, ...urls: readonly string[]): Promise<string> {
  const { environment } = session;
  const { stdout } = await succeed('kioclient5', ['--noninteractive', '--overwrite', command, ...urls], {
    environment,
  });
  return stdout;
}

/** Returns the names that `kioclient5 ls` shows. */
async function listed(path: string): Promise<string[]> {
  const lines = (await kio('ls', dav(path))).split('\n');
  return lines.filter((name) => name !== '' && name !== '.').sort();
}

/** Writes a local file; resolves with its path. */
async function localFile(name: string, content: string | Buffer): Promise<string> {
  const path = join(local.path, name);
  await writeFile(path, content);
  return path;
}

describe('kio', () => {
  test(
    'kioclient5 copies a file of several blocks to the drive and gets it byte for byte',
    shows('kio', 'read', 'write', 'large file'),
    async () => {
      await kio('copy', await localFile('large', LARGE), dav('large.bin'));
      expect((await folder.read('large.bin'))?.equals(LARGE)).toBe(true);
      await kio('copy', dav('large.bin'), join(local.path, 'back'));
      expect((await readFile(join(local.path, 'back'))).equals(LARGE)).toBe(true);
    },
  );

  test('kioclient5 copy replaces the content of a file', shows('kio', 'overwrite'), async () => {
    for (const text of ['first', 'a longer second text', 'third']) {
      await kio('copy', await localFile('text', text), dav('replaced'));
      expect(await kio('cat', dav('replaced'))).toBe(text);
    }
  });

  test(
    'kioclient5 sends a folder with all files, and renames, moves, copies, lists and removes them on the drive',
    shows('kio', 'list', 'rename', 'move', 'copy', 'delete'),
    async () => {
      await mkdir(join(local.path, 'one', 'two'), { recursive: true });
      await localFile('one/file', 'content');
      await localFile('one/two/inner', 'inner content');
      await kio('copy', join(local.path, 'one'), dav('one'));
      expect(await listed('one')).toEqual(['file', 'two']);
      expect(String(await folder.read('one/two/inner'))).toBe('inner content');
      await kio('move', dav('one/file'), dav('one/renamed'));
      await kio('move', dav('one/renamed'), dav('one/two/moved'));
      await kio('copy', dav('one/two/moved'), dav('one/copied'));
      expect(await listed('one')).toEqual(['copied', 'two']);
      expect(String(await folder.read('one/copied'))).toBe('content');
      await kio('move', dav('one/two'), dav('three'));
      expect(await listed('three')).toEqual(['inner', 'moved']);
      await kio('copy', dav('three'), join(local.path, 'three'));
      expect((await readdir(join(local.path, 'three'))).sort()).toEqual(['inner', 'moved']);
      await kio('remove', dav('three'));
      await kio('remove', dav('one/copied'));
      expect(await listed('one')).toEqual([]);
      expect(await folder.read('three/moved')).toBeUndefined();
    },
  );

  test(
    'files with odd names are copied to the drive, listed, read, renamed and removed by kioclient5',
    shows('kio', 'odd names'),
    async () => {
      const source = join(local.path, 'odd');
      await mkdir(source);
      for (const name of NAMES) await writeFile(join(source, name), name);
      await kio('copy', source, dav('odd'));
      expect(await listed('odd')).toEqual([...NAMES].sort());
      for (const name of NAMES) {
        expect(await kio('cat', dav(`odd/${name}`))).toBe(name);
        await kio('move', dav(`odd/${name}`), dav(`odd/new ${name}`));
      }
      expect(await listed('odd')).toEqual(NAMES.map((name) => `new ${name}`).sort());
      for (const name of NAMES) await kio('remove', dav(`odd/new ${name}`));
      expect(await listed('odd')).toEqual([]);
    },
  );

  test(
    'four kioclient5 copy at the same time leave four whole files',
    shows('kio', 'two at once'),
    async () => {
      const names = Array.from({ length: 4 }, (_, index) => `at once ${index}`);
      const content = (name: string) => pseudoRandomBytes(300_000, Number(name.at(-1)));
      await Promise.all(
        names.map(async (name) => kio('copy', await localFile(name, content(name)), dav(name))),
      );
      for (const name of names) expect((await folder.read(name))?.equals(content(name))).toBe(true);
    },
  );
});
