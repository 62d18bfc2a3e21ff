import { appendFile, mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { shows } from '../support/compatibility.ts';
import { type DavfsMount, mountDavfs } from '../support/davfs.ts';
import { effort, IS_LONG } from '../support/effort.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { digestTree, makeRealTree } from '../support/trees.ts';

let program: Program;
let mount: DavfsMount;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let source: Awaited<ReturnType<typeof temporaryDirectory>>;

/** Unmounts, which sends all changes, and mounts again with an empty cache, so that reads come from the drive. */
async function remount(): Promise<void> {
  await mount.unmount();
  mount = await mountDavfs(program);
}

describe.each(IS_LONG ? ['through', 'back'] : ['through'])('davfs2, --write-mode %s', (mode) => {
  beforeAll(async () => {
    [data, source] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
    program = await startProgram({ dataDirectory: data.path, args: ['--write-mode', mode] });
    mount = await mountDavfs(program);
  });
  afterAll(async () => {
    await mount?.unmount();
    await program?.stop();
    await Promise.all([data.remove(), source.remove()]);
  });

  test(
    'a real tree of packages copied through davfs2 comes back byte for byte',
    shows('davfs2', 'list', 'read', 'write'),
    async () => {
      const count = await makeRealTree(join(source.path, 'tree'));
      expect(count).toBeGreaterThan(Math.min(2000, effort(80)));
      await mount.copyIn(join(source.path, 'tree'), 'tree');
      await remount();
      const wanted = await digestTree(join(source.path, 'tree'));
      expect(await digestTree(join(mount.path, 'tree'))).toEqual(wanted);
    },
  );

  test(
    'davfs2 appends to, truncates and replaces files, and their bytes are right after a remount',
    shows('davfs2', 'overwrite'),
    async () => {
      const file = (name: string) => join(mount.path, name);
      for (const name of ['appended.txt', 'truncated.txt', 'replaced.txt'])
        await writeFile(file(name), 'first line\n');
      await remount();
      await appendFile(file('appended.txt'), 'second line\n');
      await truncate(file('truncated.txt'), 5);
      await writeFile(file('replaced.txt'), 'quite another text');
      await remount();
      expect(await readFile(file('appended.txt'), 'utf8')).toBe('first line\nsecond line\n');
      expect(await readFile(file('truncated.txt'), 'utf8')).toBe('first');
      expect(await readFile(file('replaced.txt'), 'utf8')).toBe('quite another text');
    },
  );

  test(
    'davfs2 makes folders, renames them with their files, and removes them',
    shows('davfs2', 'rename', 'move', 'delete'),
    async () => {
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
    },
  );

  test(
    'davfs2 makes, renames and removes files with names that the service does not take',
    shows('davfs2', 'odd names'),
    async () => {
      const odd = (name = '') => join(mount.path, 'odd', name);
      await mkdir(odd());
      for (const name of ODD_NAMES) await writeFile(odd(name), name);
      await remount();
      expect((await readdir(odd())).sort()).toEqual([...ODD_NAMES].sort());
      for (const name of ODD_NAMES) {
        expect(await readFile(odd(name), 'utf8')).toBe(name);
        await rename(odd(name), odd(`new ${name}`));
      }
      await remount();
      expect((await readdir(odd())).sort()).toEqual(ODD_NAMES.map((name) => `new ${name}`).sort());
      await rm(odd(), { recursive: true });
    },
  );

  test(
    'davfs2 makes, renames and removes files whose names are not UTF-8',
    shows('davfs2', 'odd names'),
    async () => {
      const at = (name: string) => Buffer.from(join(mount.path, 'bytes', name), 'latin1');
      const listed = async () => (await readdir(at(''), { encoding: 'latin1' })).sort();
      await mkdir(at(''));
      await writeFile(at('caf\xe9'), 'latin1');
      await writeFile(at('\xff\xfe'), 'bytes');
      await remount();
      expect(await listed()).toEqual(['caf\xe9', '\xff\xfe']);
      expect(await readFile(at('caf\xe9'), 'utf8')).toBe('latin1');
      await rename(at('caf\xe9'), at('th\xe9'));
      await rm(at('\xff\xfe'));
      await remount();
      expect(await listed()).toEqual(['th\xe9']);
      expect(await readFile(at('th\xe9'), 'utf8')).toBe('latin1');
    },
  );

  test('davfs2 leaves no unsent file in lost+found', async () => {
    const listed = readdir(join(mount.path, 'lost+found')).catch((failure: NodeJS.ErrnoException) => {
      if (failure.code !== 'ENOENT') throw failure;
      return [];
    });
    expect(await listed).toEqual([]);
  });
});
