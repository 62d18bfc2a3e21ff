import { mkdir, readdir, readFile, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type DavfsMount, mountDavfs } from '../support/davfs.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

let program: Program;
let mount: DavfsMount;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  data = await temporaryDirectory();
  program = await startProgram({ dataDirectory: data.path });
  mount = await mountDavfs(program);
});
afterAll(async () => {
  await mount?.unmount();
  await program?.stop();
  await data.remove();
});

/** Unmounts, which sends all changes, and mounts again with an empty cache, so that reads come from the drive. */
async function remount(): Promise<void> {
  await mount.unmount();
  mount = await mountDavfs(program);
}

describe('davfs2', () => {
  const NAMES = [
    ['spaces', 'a name with  spaces'],
    ['a hash and a question mark', 'a#b?c'],
    ['percent signs', '100%41 %zz'],
    ['an ampersand and angle brackets', 'this & that <b>'],
    ['quotes', `"double" 'single' \`back\``],
    ['umlauts, composed', 'Müßiggänger'.normalize('NFC')],
    ['umlauts, decomposed', 'Äpfel und Öl'.normalize('NFD')],
    ['emoji', 'party 🎉👩‍👩‍👧'],
    // davfs2 names its cache file after the file, with seven more characters: it cannot open a longer name.
    ['248 bytes', 'n'.repeat(248)],
  ] as const;
  const contentOf = (name: string) => pseudoRandomBytes(1000, name.length);
  const listedNames = async () => (await readdir(mount.path)).map((found) => found.normalize('NFC'));

  // All names share one remount, because davfs2 takes seconds to unmount.
  describe('unusual names', () => {
    beforeAll(async () => {
      for (const [, name] of NAMES) await writeFile(join(mount.path, name), contentOf(name));
      await remount();
    });

    test.each(NAMES)(
      'a file whose name has %s is listed by davfs2 after a remount, and read byte for byte',
      async (_, name) => {
        const stored = join(mount.path, name.normalize('NFC'));
        expect(await listedNames()).toContain(name.normalize('NFC'));
        expect((await readFile(stored)).equals(contentOf(name))).toBe(true);
        expect((await stat(stored)).size).toBe(1000);
      },
    );

    test('files with unusual names that davfs2 removes are gone after a remount', async () => {
      for (const [, name] of NAMES) await rm(join(mount.path, name.normalize('NFC')));
      await remount();
      const left = await listedNames();
      expect(NAMES.filter(([, name]) => left.includes(name.normalize('NFC')))).toEqual([]);
    });
  });

  describe('a name with 255 bytes', () => {
    const name = 'ü'.repeat(127).concat('n');
    const content = pseudoRandomBytes(1000, 255);

    // davfs2 cannot open a file with such a name (see above), but it can rename a file to it.
    test('a file that davfs2 renames to a name of 255 bytes is whole at the gateway, listed, renamed back and removed', async () => {
      await writeFile(join(mount.path, 'short'), content);
      await rename(join(mount.path, 'short'), join(mount.path, name));
      await remount();
      expect(await listedNames()).toContain(name);
      expect((await stat(join(mount.path, name))).size).toBe(1000);
      const answer = await fetch(new URL(encodeURIComponent(name), program.url), {
        headers: { authorization: program.authorization },
      });
      expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true);
      await rename(join(mount.path, name), join(mount.path, 'short'));
      await remount();
      expect((await readFile(join(mount.path, 'short'))).equals(content)).toBe(true);
      await rename(join(mount.path, 'short'), join(mount.path, name));
      await rm(join(mount.path, name));
      await remount();
      expect(await listedNames()).not.toContain(name);
    });

    test('a folder whose name has 255 bytes is made by davfs2, holds a file that is read back, and is removed', async () => {
      await mkdir(join(mount.path, name));
      await writeFile(join(mount.path, name, 'inside'), content);
      await remount();
      expect((await readFile(join(mount.path, name, 'inside'))).equals(content)).toBe(true);
      // Removed one by one: davfs2 caches a listing in a file with the folder's name, so it cannot list this folder.
      await rm(join(mount.path, name, 'inside'));
      await rmdir(join(mount.path, name));
      await remount();
      expect(await listedNames()).not.toContain(name);
    });
  });

  test('davfs2 leaves no unsent file of an unusual name in lost+found', async () => {
    const listed = readdir(join(mount.path, 'lost+found')).catch((failure: NodeJS.ErrnoException) => {
      if (failure.code !== 'ENOENT') throw failure;
      return [];
    });
    expect(await listed).toEqual([]);
  });
});
