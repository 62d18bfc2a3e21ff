import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { succeed } from '../support/command.ts';
import { type DavfsMount, mountDavfs } from '../support/davfs.ts';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { cheapHash } from '../support/program.ts';
import { configureRclone, type Rclone } from '../support/rclone.ts';

// Older versions and deleted files in a mount (`--history-folders`, here in a configuration file).

const drive = driveInBrowser({
  'history-folders': true,
  drives: { shared: { delete: 'trash' } },
  users: [{ name: 'tester', 'password-hash': cheapHash('pass word:1'), drive: 'shared' }],
});

/** A file with three versions, a deleted file and a deleted folder. */
beforeEach(async () => {
  await drive.put('a.txt', 'first');
  for (const text of ['second', 'third']) await drive.dav('PUT', 'a.txt', text);
  await drive.dav('MKCOL', 'old');
  await drive.dav('MKCOL', 'old/deep');
  for (const path of ['gone.txt', 'old/b', 'old/deep/c']) await drive.put(path);
  for (const path of ['gone.txt', 'old']) expect((await drive.dav('DELETE', path)).status).toBe(204);
});

describe('a davfs2 mount', () => {
  let mount: DavfsMount;
  beforeEach(async () => {
    mount = await mountDavfs(drive.program);
    return () => mount.unmount();
  });

  /** Returns the path of something below a folder at the top of the mount. */
  const at = (top: string, ...names: readonly string[]) => join(mount.path, top, drive.folder, ...names);

  test('cp restores an older version from a davfs2 mount, and cp -r a deleted folder', async () => {
    const names = (await readdir(at('.versions', 'a.txt'))).sort();
    const texts = await Promise.all(names.map((name) => readFile(at('.versions', 'a.txt', name), 'utf8')));
    expect(texts.sort()).toEqual(['first', 'second']);
    await succeed('cp', [at('.versions', 'a.txt', names[0] ?? ''), at('', 'a.txt')]);
    await succeed('cp', ['-r', at('.trash', 'old'), at('', 'old')]);
    await expectSoon(() => drive.textOf('old/deep/c')).toBe('old/deep/c');
    await expectSoon(() => drive.textOf('a.txt')).toMatch(/^(first|second)$/);
  });

  test('a change in the folders of a davfs2 mount is refused, and everything stays', async () => {
    const deleted = at('.trash', 'gone.txt');
    expect((await stat(deleted)).size).toBe(8);
    // davfs2 has no other error for a move that a server refuses.
    await expect(rename(deleted, at('', 'gone.txt'))).rejects.toThrow(/EIO/);
    await expect(rm(deleted)).rejects.toThrow(/EACCES|EPERM/);
    await expect(writeFile(at('.trash', 'new'), 'new')).rejects.toThrow(/EACCES|EPERM/);
    expect(await readFile(deleted, 'utf8')).toBe('gone.txt');
    expect(await drive.statusOf('gone.txt')).toBe(404);
  });
});

describe('rclone', () => {
  let rclone: Rclone;
  beforeAll(async () => {
    rclone = await configureRclone(drive.program);
  });
  afterAll(() => rclone.remove());

  test('rclone copies a version and a deleted file back at the server, and a deleted folder', async () => {
    const { stdout } = await rclone.run('lsf', `drive:.versions/${drive.folder}/a.txt`);
    const [version] = stdout.trim().split('\n').sort();
    await rclone.run(
      'copyto',
      `drive:.versions/${drive.folder}/a.txt/${version}`,
      `drive:${drive.folder}/restored.txt`,
    );
    expect(await drive.textOf('restored.txt')).toMatch(/^(first|second)$/);
    await rclone.run('copyto', `drive:.trash/${drive.folder}/gone.txt`, `drive:${drive.folder}/gone.txt`);
    expect(await drive.textOf('gone.txt')).toBe('gone.txt');
    await rclone.run('copy', `drive:.trash/${drive.folder}/old`, `drive:${drive.folder}/old`);
    expect(await drive.textOf('old/deep/c')).toBe('old/deep/c');
  });

  test('rclone moves nothing out of the trash, and reports an error', async () => {
    const move = rclone.run(
      'moveto',
      `drive:.trash/${drive.folder}/gone.txt`,
      `drive:${drive.folder}/gone.txt`,
    );
    await expect(move).rejects.toThrow(/403|Forbidden/);
    const { stdout } = await rclone.run('lsf', `drive:.trash/${drive.folder}`);
    expect(stdout.split('\n')).toContain('gone.txt');
  });

  test('an rclone mount reads deleted files, and cp -r restores a deleted folder', async () => {
    const mount = await rclone.mount('--vfs-cache-mode', 'writes', '--vfs-write-back', '0s');
    const at = (top: string, ...names: readonly string[]) => join(mount.path, top, drive.folder, ...names);
    expect(await readFile(at('.trash', 'old', 'deep', 'c'), 'utf8')).toBe('old/deep/c');
    await succeed('cp', ['-r', at('.trash', 'old'), at('', 'old')]);
    await expectSoon(() => drive.textOf('old/deep/c')).toBe('old/deep/c');
    await mount.unmount();
  });
});

test('the web application does not show the folders, and a client sees both', async () => {
  await drive.page.goto(drive.program.url);
  await expectSoon(() => drive.names()).toContain(drive.folder);
  expect((await drive.names()).filter((name) => name.startsWith('.'))).toEqual([]);
  const { stdout } = await succeed('curl', [
    ...['-s', '-u', `${drive.program.user}:${drive.program.password}`],
    ...['-X', 'PROPFIND', '-H', 'Depth: 1', drive.program.url],
  ]);
  expect(stdout).toContain('<D:href>/.trash/</D:href>');
  expect(stdout).toContain('<D:href>/.versions/</D:href>');
});
