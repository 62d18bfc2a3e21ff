import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder } from '../../../src/util/make-folder.ts';

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-make-folder-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test('what is missing is made, for this user alone, and told from the top down', async () => {
  const top = await temporaryFolder();
  expect(makeFolder(join(top, 'a', 'b', 'c'))).toEqual(['a', 'a/b', 'a/b/c'].map((path) => join(top, path)));
  expect((await stat(join(top, 'a'))).mode & 0o777).toBe(0o700);
  expect((await stat(join(top, 'a/b/c'))).isDirectory()).toBe(true);
  expect(makeFolder(join(top, 'a', 'b', 'd', '..', 'e'))).toEqual([join(top, 'a/b/e')]);
});

test('the folder above each one that was made is synced, so that no power cut takes it back', async () => {
  const top = await temporaryFolder();
  await mkdir(join(top, 'a'));
  const synced: string[] = [];
  makeFolder(join(top, 'a', 'b', 'c'), (folder) => void synced.push(folder));
  expect(synced).toEqual([join(top, 'a'), join(top, 'a/b')]);
  makeFolder(join(top, 'a', 'b', 'c'), (folder) => void synced.push(folder));
  expect(synced).toHaveLength(2);
});

test('what is there stays as it is', async () => {
  const top = await temporaryFolder();
  await mkdir(join(top, 'a'), { mode: 0o755 });
  await symlink(join(top, 'a'), join(top, 'link'));
  expect([makeFolder(join(top, 'a')), makeFolder(join(top, 'link')), makeFolder('/')]).toEqual([[], [], []]);
  expect((await stat(join(top, 'a'))).mode & 0o777).toBe(0o755);
});

test('what is in the way is told in the words of the system', async () => {
  const top = await temporaryFolder();
  await writeFile(join(top, 'file'), '');
  await symlink(join(top, 'nowhere'), join(top, 'dangling'));
  const codeOf = (path: string) => {
    try {
      return makeFolder(join(top, path));
    } catch (failure) {
      return (failure as NodeJS.ErrnoException).code;
    }
  };
  expect(['file', 'file/below', 'file/below/more', 'dangling'].map(codeOf)).toEqual([
    'EEXIST',
    'ENOTDIR',
    'ENOTDIR',
    'EEXIST',
  ]);
});

test.each(['/proc/davgate', '/proc/davgate/below'])(
  '%s can never be made, and that is told at once',
  (path) => {
    expect(() => makeFolder(path)).toThrow(/ENOENT/);
  },
);
