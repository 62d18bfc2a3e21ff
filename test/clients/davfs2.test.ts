import {
  appendFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type DavfsMount, mountDavfs } from '../support/davfs.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { digestTree, makeRealTree } from '../support/trees.ts';

let program: Program;
let mount: DavfsMount;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let source: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, source] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  program = await startProgram({ dataDirectory: data.path });
  mount = await mountDavfs(program);
});
afterAll(async () => {
  await mount?.unmount();
  await program?.stop();
  await Promise.all([data.remove(), source.remove()]);
});

/** Unmounting sends everything; a fresh mount with an empty cache shows what the drive really holds. */
async function remount(): Promise<void> {
  await mount.unmount();
  mount = await mountDavfs(program);
}

describe('davfs2', () => {
  test('a real tree of thousands of files comes back byte for byte', async () => {
    const count = await makeRealTree(join(source.path, 'tree'));
    expect(count).toBeGreaterThan(2000);
    await mount.copyIn(join(source.path, 'tree'), 'tree');
    await remount();
    const wanted = await digestTree(join(source.path, 'tree'));
    expect(await digestTree(join(mount.path, 'tree'))).toEqual(wanted);
  });

  test('edit, append and truncate change what they should and nothing else', async () => {
    const file = join(mount.path, 'notes.txt');
    await writeFile(file, 'first line\n');
    await remount();
    await appendFile(join(mount.path, 'notes.txt'), 'second line\n');
    await remount();
    expect(await readFile(join(mount.path, 'notes.txt'), 'utf8')).toBe('first line\nsecond line\n');
    await truncate(join(mount.path, 'notes.txt'), 5);
    await remount();
    expect(await readFile(join(mount.path, 'notes.txt'), 'utf8')).toBe('first');
    await writeFile(join(mount.path, 'notes.txt'), 'quite another text');
    await remount();
    expect(await readFile(join(mount.path, 'notes.txt'), 'utf8')).toBe('quite another text');
  });

  test('folders are made, renamed with what is in them, and removed', async () => {
    await mkdir(join(mount.path, 'one/two'), { recursive: true });
    await writeFile(join(mount.path, 'one/two/file'), 'inside');
    await rename(join(mount.path, 'one'), join(mount.path, 'renamed'));
    await writeFile(join(mount.path, 'here'), 'moved over');
    await rename(join(mount.path, 'here'), join(mount.path, 'renamed/two/file'));
    await remount();
    expect(await readFile(join(mount.path, 'renamed/two/file'), 'utf8')).toBe('moved over');
    await rm(join(mount.path, 'renamed'), { recursive: true });
    await remount();
    const names = await readdir(mount.path);
    expect(names).not.toContain('renamed');
    expect(names).not.toContain('one');
    expect(names).not.toContain('here');
  });

  test.each([
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
  ])('a name with %s', async (_, name) => {
    const content = pseudoRandomBytes(1000, name.length);
    await writeFile(join(mount.path, name), content);
    await remount();
    const names = (await readdir(mount.path)).map((found) => found.normalize('NFC'));
    expect(names).toContain(name.normalize('NFC'));
    const stored = join(mount.path, name.normalize('NFC'));
    expect((await readFile(stored)).equals(content)).toBe(true);
    expect((await stat(stored)).size).toBe(1000);
    await rm(stored);
    await remount();
    expect((await readdir(mount.path)).map((found) => found.normalize('NFC'))).not.toContain(
      name.normalize('NFC'),
    );
  });

  describe('a name with 255 bytes', () => {
    const name = 'ü'.repeat(127).concat('n');
    const content = pseudoRandomBytes(1000, 255);
    const shown = async () => (await readdir(mount.path)).map((found) => found.normalize('NFC'));

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
