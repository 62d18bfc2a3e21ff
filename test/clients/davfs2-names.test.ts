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

/** Unmounting sends everything; a fresh mount with an empty cache shows what the drive really holds. */
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
    // davfs2 names its cache file after the file, and seven characters more: it cannot open a longer name itself.
    ['248 bytes', 'n'.repeat(248)],
  ] as const;
  const contentOf = (name: string) => pseudoRandomBytes(1000, name.length);
  const shown = async () => (await readdir(mount.path)).map((found) => found.normalize('NFC'));

  // One mount for all names: davfs2 takes seconds to unmount.
  describe('names that are written, and read in a fresh mount', () => {
    beforeAll(async () => {
      for (const [, name] of NAMES) await writeFile(join(mount.path, name), contentOf(name));
      await remount();
    });

    test.each(NAMES)('a file whose name has %s is shown, and read byte for byte', async (_, name) => {
      const stored = join(mount.path, name.normalize('NFC'));
      expect(await shown()).toContain(name.normalize('NFC'));
      expect((await readFile(stored)).equals(contentOf(name))).toBe(true);
      expect((await stat(stored)).size).toBe(1000);
    });

    test('each of these files is gone once it is removed', async () => {
      for (const [, name] of NAMES) await rm(join(mount.path, name.normalize('NFC')));
      await remount();
      const left = await shown();
      expect(NAMES.filter(([, name]) => left.includes(name.normalize('NFC')))).toEqual([]);
    });
  });

  describe('a name with 255 bytes', () => {
    const name = 'ü'.repeat(127).concat('n');
    const content = pseudoRandomBytes(1000, 255);

    // davfs2 cannot open a file of that name itself (see above); it can write one and give it the name.
    test('is given to a file, which is then whole at the gateway, shown, renamed and removed', async () => {
      await writeFile(join(mount.path, 'short'), content);
      await rename(join(mount.path, 'short'), join(mount.path, name));
      await remount();
      expect(await shown()).toContain(name);
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
      expect(await shown()).not.toContain(name);
    });

    test('is that of a folder, in which files are written and read', async () => {
      await mkdir(join(mount.path, name));
      await writeFile(join(mount.path, name, 'inside'), content);
      await remount();
      expect((await readFile(join(mount.path, name, 'inside'))).equals(content)).toBe(true);
      // One by one: davfs2 keeps a folder's list in a file of that name too, so it cannot list this one.
      await rm(join(mount.path, name, 'inside'));
      await rmdir(join(mount.path, name));
      await remount();
      expect(await shown()).not.toContain(name);
    });
  });

  test('nothing was lost on the way: davfs2 keeps what it could not send in lost+found', async () => {
    expect(await readdir(join(mount.path, 'lost+found')).catch(() => [])).toEqual([]);
  });
});
