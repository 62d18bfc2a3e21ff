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

test('makeFolder makes missing folders for this user only and returns them from the top down', async () => {
  const top = await temporaryFolder();
  expect(makeFolder(join(top, 'a', 'b', 'c'))).toEqual(['a', 'a/b', 'a/b/c'].map((path) => join(top, path)));
  expect((await stat(join(top, 'a'))).mode & 0o777).toBe(0o700);
  expect((await stat(join(top, 'a/b/c'))).isDirectory()).toBe(true);
  expect(makeFolder(join(top, 'a', 'b', 'd', '..', 'e'))).toEqual([join(top, 'a/b/e')]);
});

test('makeFolder syncs the folder above each new one, and nothing for existing ones', async () => {
  const top = await temporaryFolder();
  await mkdir(join(top, 'a'));
  const synced: string[] = [];
  makeFolder(join(top, 'a', 'b', 'c'), (folder) => void synced.push(folder));
  expect(synced).toEqual([join(top, 'a'), join(top, 'a/b')]);
  makeFolder(join(top, 'a', 'b', 'c'), (folder) => void synced.push(folder));
  expect(synced).toHaveLength(2);
});

test('makeFolder leaves existing folders unchanged, also behind a symbolic link', async () => {
  const top = await temporaryFolder();
  await mkdir(join(top, 'a'), { mode: 0o755 });
  await symlink(join(top, 'a'), join(top, 'link'));
  expect([makeFolder(join(top, 'a')), makeFolder(join(top, 'link')), makeFolder('/')]).toEqual([[], [], []]);
  expect((await stat(join(top, 'a'))).mode & 0o777).toBe(0o755);
});

test("makeFolder fails with the system's error code when a file is in the way", async () => {
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

test.each(['/proc/davgate', '/proc/davgate/below'])('makeFolder fails with ENOENT at once for %s', (path) => {
  expect(() => makeFolder(path)).toThrow(/ENOENT/);
});
