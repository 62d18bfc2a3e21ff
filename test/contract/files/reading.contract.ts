import { beforeAll, describe, expect, test } from 'vitest';
import type { Files } from '../../../src/drive/files.ts';
import { join, keyOf, nameOf, type Path, ROOT } from '../../../src/util/path.ts';
import { faultOf } from '../../support/fault-of.ts';
import { path } from '../../support/paths.ts';
import type { FilesUnderTest } from './files-under-test.ts';

/** Tests stat, list, walk, shared links and free space. */
export function readingContract(drive: FilesUnderTest): void {
  let files: Files;
  beforeAll(() => {
    files = drive.files;
  });
  const { newFolder, put } = drive;

  describe('entries', () => {
    test('stat of the root returns a folder', async () => {
      expect(await files.stat(ROOT)).toMatchObject({ kind: 'folder', path: '/', name: '' });
    });

    test('a file is found in any letter case and shown with its original name', async () => {
      const folder = await newFolder();
      const { entry } = await put(join(folder, 'Übung #1 %41.txt'), 'text');
      expect(entry).toMatchObject({ kind: 'file', name: 'Übung #1 %41.txt', sizeBytes: 4 });
      expect(await files.stat(path(`${folder.toUpperCase()}/u\u0308BUNG #1 %41.TXT`))).toEqual(entry);
      expect((await files.list(path(folder.toUpperCase()))).children).toEqual([entry]);
    });

    test('known returns the entry of stat or undefined, also after a change and a removal', async () => {
      const at = join(await newFolder(), 'f');
      for (const text of ['x', 'other']) {
        const { entry } = await put(at, text);
        expect([entry, undefined]).toContainEqual(files.known(at));
        expect(await drive.textAt(at)).toBe(text);
        expect(await drive.textAt(at)).toBe(text);
      }
      await files.remove(at, { recoverable: false });
      expect(files.known(at)).toBeUndefined();
    });

    test('a missing path has no entry, and cannot be listed, like a file', async () => {
      const folder = await newFolder();
      await put(join(folder, 'f'), 'x');
      expect(await files.stat(join(folder, 'none'))).toBeUndefined();
      expect(await files.stat(path(`${folder}/f/below`))).toBeUndefined();
      expect(await faultOf(files.list(join(folder, 'none')))).toBe('not-found');
      expect(await faultOf(files.list(join(folder, 'f')))).toBe('not-a-folder');
    });

    test('a walk yields every folder with its children, parents first', async () => {
      const folder = await newFolder();
      for (const name of ['a', 'b', 'a/deep']) await files.createFolder(path(`${folder}/${name}`));
      await put(path(`${folder}/a/deep/f`), 'x');
      const seen = new Map<string, string[]>();
      for await (const listing of files.walk(folder)) {
        if (listing.folder.path !== folder)
          expect(seen.has(listing.folder.path.slice(0, listing.folder.path.lastIndexOf('/')))).toBe(true);
        seen.set(listing.folder.path, listing.children.map((child) => child.name).sort());
      }
      expect(Object.fromEntries(seen)).toEqual({
        [folder]: ['a', 'b'],
        [`${folder}/a`]: ['deep'],
        [`${folder}/b`]: [],
        [`${folder}/a/deep`]: ['f'],
      });
    });
  });

  describe('shared links', () => {
    test('a shared link can be created, replaced, found and revoked', async () => {
      const at = join(await newFolder(), 'f');
      await put(at, 'x');
      expect(await files.sharedLink(at)).toBeUndefined();
      const link = await files.shareLink(at, {});
      expect(await files.sharedLink(at)).toEqual(link);
      const second = await files.shareLink(at, { visibility: 'password', password: 'sesame' });
      expect(second).toMatchObject({ visibility: 'password' });
      expect(await files.sharedLink(at)).toEqual(second);
      await files.unshareLink(at);
      await files.unshareLink(at);
      expect(await files.sharedLink(at)).toBeUndefined();
      expect(await faultOf(files.shareLink(join(await newFolder(), 'none'), {}))).toBe('not-found');
      expect(await faultOf(files.shareLink(at, { visibility: 'password' }))).toBe('unsupported');
    });
  });

  describe('the links of a path', () => {
    test('a second link is refused, and a link is changed and revoked by its own path alone', async () => {
      const folder = await newFolder();
      const [at, other] = [join(folder, 'f'), join(folder, 'other')];
      for (const each of [at, other]) await put(each, 'x');
      const { url } = await files.createLink(at, { visibility: 'password', password: 'sesame' });
      expect(await faultOf(files.createLink(at, {}))).toBe('exists');
      expect(await faultOf(files.changeLink(other, url, { expiresMs: 'never' }))).toBe('not-found');
      expect(await faultOf(files.revokeLink(other, url))).toBe('not-found');
      expect(await files.changeLink(at, url, { visibility: 'public' })).toEqual({
        url,
        visibility: 'public',
      });
      expect(await files.sharedLinks(at)).toEqual([{ url, visibility: 'public', kind: 'file', path: at }]);
      expect(await files.sharedLinks(other)).toEqual([]);
      await files.revokeLink(at, url);
      expect(await faultOf(files.revokeLink(at, url))).toBe('not-found');
      expect(await files.sharedLinks(at)).toEqual([]);
    });

    test('all links of the drive are listed with the paths of their entries', async () => {
      const folder = await newFolder();
      const at = join(folder, 'Übung');
      await put(at, 'x');
      const { url } = await files.createLink(at, {});
      const all = await files.sharedLinks(undefined);
      expect(all.filter((link) => link.url === url)).toEqual([
        { url, visibility: 'public', kind: 'file', path: expect.toSatisfy(isPathOf(at)) },
      ]);
    });

    test('a path without an entry has no links and gets none', async () => {
      const none = join(await newFolder(), 'none');
      expect(await faultOf(files.sharedLinks(none))).toBe('not-found');
      expect(await faultOf(files.createLink(none, {}))).toBe('not-found');
      expect(await faultOf(files.changeLink(none, 'https://links.example/1', {}))).toBe('not-found');
    });
  });

  test('a new file reduces the free space by its size', async () => {
    const before = await files.freeSpace();
    await put(join(await newFolder(), 'f'), 'x'.repeat(100_000));
    const after = await files.freeSpace();
    expect((after?.usedBytes ?? 0) - (before?.usedBytes ?? 0)).toBe(100_000);
    expect((before?.availableBytes ?? 0) - (after?.availableBytes ?? 0)).toBe(100_000);
  });
}

/** Whether a path is `at`. The names of folders that the cache does not know are in the letter case that the service gives. */
function isPathOf(at: Path): (path: Path) => boolean {
  return (path) => keyOf(path) === keyOf(at) && nameOf(path) === nameOf(at);
}
