import { beforeAll, describe, expect, test } from 'vitest';
import type { FileEntry, Remote } from '../../../src/api/remote.ts';
import { readAll } from '../../../src/util/byte-source.ts';
import { keyOf, type Path } from '../../../src/util/path.ts';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { ANY, type RemoteUnderTest } from './remote-under-test.ts';

/** Tests former revisions and deleted entries. */
export function historyContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  beforeAll(() => {
    remote = drive.remote;
  });
  const { newFolder } = drive;
  const write = (at: string, text: string) => remote.write(path(at), bodyOf(text), ANY);
  const revs = (files: readonly FileEntry[]) => files.map(({ rev }) => rev);
  const textOf = async (file: FileEntry) =>
    Buffer.from(await readAll(await remote.download(file, undefined), file.sizeBytes)).toString();
  const deletedIn = async (folder: Path, recursive: boolean) => {
    const found: string[] = [];
    for await (const { changes } of remote.list(folder, { recursive, withDeleted: true }))
      for (const change of changes) if (change.kind === 'deleted') found.push(keyOf(change.path));
    return found.sort();
  };

  describe('former revisions', () => {
    test('revisions lists the newest first, also after a deletion, and tells whether there are more', async () => {
      const at = `${await newFolder()}/f`;
      const first = await write(at, 'first');
      const second = await write(at, 'second');
      expect(await remote.revisions(path(at), { limit: 10 })).toEqual({
        files: [second, first],
        hasMore: false,
        isDeleted: false,
      });
      await remote.remove(path(at), { permanent: false });
      expect(await remote.revisions(path(at), { limit: 1 })).toEqual({
        files: [second],
        hasMore: true,
        isDeleted: true,
        deletedMs: expect.any(Number),
      });
    });

    test('revisions of a folder fails with not-file, also when it is deleted, and of an unknown path with not-found', async () => {
      const folder = await newFolder();
      await expect(remote.revisions(path(folder), { limit: 10 })).rejects.toMatchObject({
        failure: 'not-file',
      });
      await remote.remove(path(folder), { permanent: false });
      await expect(remote.revisions(path(folder), { limit: 10 })).rejects.toMatchObject({
        failure: 'not-file',
      });
      await expect(remote.revisions(path('/never'), { limit: 10 })).rejects.toMatchObject({
        failure: 'not-found',
      });
    });

    test('restore makes an old revision the current one, with a rev of its own', async () => {
      const at = `${await newFolder()}/f`;
      const first = await write(at, 'first');
      const second = await write(at, 'second');
      const restored = await remote.restore(path(at), first.rev);
      expect(restored).toMatchObject({ id: first.id, path: at, contentHash: first.contentHash });
      expect(revs([first, second])).not.toContain(restored.rev);
      expect(await remote.stat(path(at))).toEqual(restored);
      expect(await textOf(restored)).toBe('first');
    });

    test('the revisions of a moved file are found with those of its former path, and can be restored', async () => {
      const folder = await newFolder();
      const first = await write(`${folder}/before`, 'first');
      await write(`${folder}/before`, 'second');
      await remote.createFolder(path(`${folder}/in`));
      const moved = await remote.move(first.path, path(`${folder}/in/After`));
      const here = await remote.revisions(moved.path, { limit: 10 });
      expect(revs(here.files)).not.toContain(first.rev);
      const { files } = await remote.revisions(moved.path, { limit: 10, followsMoves: true });
      expect(files.at(-1)).toEqual({ ...first, path: `${folder}/in/before` });
      const restored = await remote.restore(moved.path, first.rev);
      expect(restored).toMatchObject({ id: first.id, path: moved.path, name: 'After' });
      expect(await textOf(restored)).toBe('first');
    });

    test('restore brings back a deleted file, and the folders above it', async () => {
      const folder = await newFolder();
      const file = await write(`${folder}/in/f`, 'content');
      await remote.remove(path(folder), { permanent: false });
      const restored = await remote.restore(file.path, file.rev);
      expect(await remote.stat(file.path)).toEqual(restored);
      expect(await remote.stat(path(folder))).toMatchObject({ kind: 'folder' });
      expect(await textOf(restored)).toBe('content');
    });

    test('restore refuses a revision of another file, and a path where a folder is', async () => {
      const folder = await newFolder();
      const file = await write(`${folder}/f`, 'f');
      const other = await write(`${folder}/g`, 'g');
      await expect(remote.restore(file.path, other.rev)).rejects.toMatchObject({ failure: 'revision-gone' });
      await expect(remote.restore(path(folder), file.rev)).rejects.toMatchObject({
        failure: 'conflict-folder',
      });
    });
  });

  describe('deleted entries', () => {
    test('a listing with deleted entries has those of the folder alone, or of everything below it', async () => {
      const folder = await newFolder();
      const file = await write(`${folder}/f`, 'f');
      const deep = await write(`${folder}/in/deep`, 'deep');
      await write(`${folder}/stays`, 'stays');
      await remote.remove(file.path, { permanent: false });
      await remote.remove(path(`${folder}/in`), { permanent: false });
      const top = [keyOf(file.path), keyOf(path(`${folder}/in`))];
      expect(await deletedIn(path(folder), false)).toEqual(top);
      expect(await deletedIn(path(folder), true)).toEqual([...top, keyOf(deep.path)]);
    });

    test('a listing with deleted entries has none that was deleted for good', async () => {
      const folder = await newFolder();
      const file = await write(`${folder}/f`, 'f');
      await remote.remove(file.path, { permanent: true });
      expect(await deletedIn(path(folder), true)).toEqual([]);
    });
  });
}
