import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { shows } from '../support/compatibility.ts';
import { mountDavfs } from '../support/davfs.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/program.ts';
import { configureRclone, type Rclone } from '../support/rclone.ts';

interface Mount {
  readonly path: string;
  unmount(): Promise<void>;
}

/** Changes files in a new folder of one mount; resolves when the other has shown each change. */
async function seeChanges(here: string, there: string, folder: string): Promise<void> {
  const [mine, theirs] = [join(here, folder), join(there, folder)];
  await mkdir(mine);
  for (const text of ['made', 'changed in the same mount']) {
    await writeFile(join(mine, 'made'), text);
    await eventually(async () => expect(await readFile(join(theirs, 'made'), 'utf8')).toBe(text));
  }
  await rename(join(mine, 'made'), join(mine, 'renamed'));
  await eventually(async () => expect(await readdir(theirs)).toEqual(['renamed']));
  await rm(join(mine, 'renamed'));
  await eventually(async () => expect(await readdir(theirs)).toEqual([]));
}

/** Writes files of their own in both mounts at the same time; resolves when davgate has all of them. */
async function writeAtOnce(folder: ClientFolder, paths: readonly string[]): Promise<void> {
  const files = paths.flatMap((path, index) =>
    [0, 1, 2, 3].map((number) => ({ path, name: `file ${number} of ${index}` })),
  );
  const content = (name: string) => pseudoRandomBytes(200_000, name.charCodeAt(5) + name.charCodeAt(10));
  await Promise.all(files.map(({ path, name }) => writeFile(join(path, name), content(name))));
  for (const { name } of files)
    await eventually(async () => expect((await folder.read(name))?.equals(content(name)), name).toBe(true));
}

describe('two davfs2 mounts of one drive', () => {
  let folder: ClientFolder;
  let mounts: readonly [Mount, Mount];
  beforeAll(async () => {
    folder = await clientFolder('two-davfs2-mounts');
    // davfs2 believes its listings for a minute otherwise.
    const refresh = ['dir_refresh 1', 'file_refresh 1'];
    mounts = [await mountDavfs(folder, refresh), await mountDavfs(folder, refresh)];
  });
  afterAll(async () => {
    for (const mount of mounts ?? []) await mount.unmount();
  });

  test(
    'each davfs2 mount shows what the other makes, changes, renames and removes',
    shows('davfs2', 'two at once'),
    async () => {
      await seeChanges(mounts[0].path, mounts[1].path, 'of one');
      await seeChanges(mounts[1].path, mounts[0].path, 'of the other');
      await writeAtOnce(folder, [mounts[0].path, mounts[1].path]);
    },
  );

  test(
    'while a file is open for writing in a davfs2 mount, a PUT of another client answers 423, and then the file is whole',
    shows('davfs2', 'lock', 'large file'),
    async () => {
      const content = pseudoRandomBytes(effort(9) * 2 ** 20, 31);
      const file = await open(join(mounts[0].path, 'locked'), 'w');
      try {
        await file.write(content);
        const put = { method: 'PUT', headers: { authorization: folder.authorization }, body: 'other' };
        expect((await fetch(folder.at('locked'), put)).status).toBe(423);
      } finally {
        await file.close();
      }
      await eventually(async () => expect((await folder.read('locked'))?.equals(content)).toBe(true));
      const there = join(mounts[1].path, 'locked');
      await eventually(async () => expect((await readFile(there)).equals(content)).toBe(true));
    },
  );
});

describe('two rclone mounts of one drive', () => {
  let folder: ClientFolder;
  let rclone: Rclone;
  const mounts: Mount[] = [];
  const caches: Awaited<ReturnType<typeof temporaryDirectory>>[] = [];
  beforeAll(async () => {
    folder = await clientFolder('two-rclone-mounts');
    rclone = await configureRclone(folder);
    const flags = ['--vfs-cache-mode', 'writes', '--vfs-write-back', '0s', '--dir-cache-time', '1s'];
    for (const _ of [1, 2]) {
      // Two mounts of one remote must not share a cache of writes.
      const cache = await temporaryDirectory();
      caches.push(cache);
      mounts.push(await rclone.mount(...flags, '--cache-dir', cache.path));
    }
  });
  afterAll(async () => {
    for (const mount of mounts) await mount.unmount();
    await rclone?.remove();
    for (const cache of caches) await cache.remove();
  });

  test(
    'each rclone mount shows what the other makes, changes, renames and removes',
    shows('rclone', 'two at once'),
    async () => {
      const paths = mounts.map(({ path }) => path);
      const [one = '', other = ''] = paths;
      await seeChanges(one, other, 'of one');
      await seeChanges(other, one, 'of the other');
      await writeAtOnce(folder, paths);
    },
  );
});
