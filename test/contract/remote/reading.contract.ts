import { beforeAll, describe, expect, test } from 'vitest';
import type { FeedChange, FileEntry, Page, Remote } from '../../../src/api/remote.ts';
import { readAll } from '../../../src/util/byte-source.ts';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { nameOf, ROOT } from '../../../src/util/path.ts';
import { bodyOf } from '../../support/bytes.ts';
import { REFUSED_NAME } from '../../support/odd-names.ts';
import { path } from '../../support/paths.ts';
import { ABSENT, ANY, bytes, listed, type RemoteUnderTest } from './remote-under-test.ts';

/** Tests entries, listings, the change feed and downloads. */
export function readingContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  beforeAll(() => {
    remote = drive.remote;
  });
  const { newFolder } = drive;

  describe('entries', () => {
    test('a file has the name, size, hash and time of its upload', async () => {
      const at = path(`${await newFolder()}/Übung #1 %41.txt`);
      const modifiedMs = Date.UTC(2020, 1, 3, 4, 5, 6);
      const file = await remote.write(at, bodyOf('content'), { ...ABSENT, modifiedMs });
      expect(file).toMatchObject({
        kind: 'file',
        path: at,
        name: 'Übung #1 %41.txt',
        sizeBytes: 7,
        contentHash: contentHashOf(bytes('content')),
        modifiedMs,
      });
      expect(await remote.stat(at)).toEqual(file);
    });

    test('names are found in any letter case and normal form', async () => {
      const folder = await newFolder();
      await remote.write(path(`${folder}/Übung.TXT`), bodyOf('x'), ANY);
      expect(await remote.stat(path(`${folder.toUpperCase()}/u\u0308BUNG.txt`))).toMatchObject({
        name: 'Übung.TXT',
      });
    });

    test('locate follows an id to its new path, and finds nothing after a removal', async () => {
      const folder = await newFolder();
      const made = await remote.createFolder(path(`${folder}/Before`));
      expect(await remote.locate(made.id)).toBe(made.path);
      await remote.move(made.path, path(`${folder}/After`));
      expect(await remote.locate(made.id)).toBe(path(`${folder}/After`));
      await remote.remove(path(`${folder}/After`), { permanent: false });
      expect(await remote.locate(made.id)).toBeUndefined();
    });

    test('stat of a missing path returns undefined', async () => {
      expect(await remote.stat(path('/not/here'))).toBeUndefined();
    });

    test('names that the service does not take are kept, also long ones, unless they cannot be written in parts', async () => {
      const folder = await newFolder();
      const paths = ['.DS_Store', 'back\\slash', 'blank ', 'x'.repeat(300)].map((name) =>
        path(`${folder}/${name}`),
      );
      for (const at of paths) {
        expect(await remote.write(at, bodyOf('x'), ANY)).toMatchObject({ path: at, name: nameOf(at) });
        expect(await remote.stat(at)).toMatchObject({ path: at });
      }
      const shown = (await listed(remote, path(folder), false)).map((entry) => entry.path);
      expect(shown.sort()).toEqual(paths.sort());
      const refused = path(`${folder}/${REFUSED_NAME}`);
      const failure = { failure: 'malformed-path' };
      await expect(remote.write(refused, bodyOf('x'), ANY)).rejects.toMatchObject(failure);
    });
  });

  describe('listings', () => {
    test('list returns the children of a folder and of the root', async () => {
      const folder = await newFolder();
      const file = await remote.write(path(`${folder}/b.txt`), bodyOf('b'), ANY);
      const inner = await remote.createFolder(path(`${folder}/A`));
      await remote.write(path(`${folder}/A/deep.txt`), bodyOf('deep'), ANY);
      expect(await listed(remote, path(folder), false)).toEqual([inner, file]);
      expect((await listed(remote, ROOT, false)).map((entry) => entry.path)).toContain(folder);
    });

    test('a recursive list returns all entries below a folder, without the folder', async () => {
      const folder = await newFolder();
      await remote.write(path(`${folder}/one/two/three.txt`), bodyOf('3'), ANY);
      const found = await listed(remote, path(folder), true);
      expect(found.map((entry) => entry.path)).toEqual([
        `${folder}/one`,
        `${folder}/one/two`,
        `${folder}/one/two/three.txt`,
      ]);
    });

    test('list of an empty folder returns no entries', async () => {
      expect(await listed(remote, path(await newFolder()), false)).toEqual([]);
    });

    test('list of a missing path or of a file fails', async () => {
      const file = await remote.write(path(`${await newFolder()}/f`), bodyOf('x'), ANY);
      await expect(listed(remote, path('/not/here'), false)).rejects.toMatchObject({
        failure: 'not-found',
      });
      await expect(listed(remote, file.path, false)).rejects.toMatchObject({ failure: 'not-folder' });
    });
  });

  describe('the change feed', () => {
    test('changesSince reports what was added, moved and removed since a cursor, once', async () => {
      const folder = await newFolder();
      const kept = await remote.write(path(`${folder}/kept`), bodyOf('1'), ANY);
      const gone = await remote.write(path(`${folder}/gone`), bodyOf('2'), ANY);
      const cursor = await remote.latestCursor();
      const moved = await remote.move(kept.path, path(`${folder}/moved`));
      await remote.remove(gone.path, { permanent: false });
      const { changes, cursor: after } = await allSince(remote, cursor);
      expect(changes).toContainEqual({ kind: 'put', entry: moved });
      expect(changes).toContainEqual({ kind: 'deleted', path: gone.path });
      expect(changes).toContainEqual({ kind: 'deleted', path: kept.path });
      expect((await allSince(remote, after)).changes).toEqual([]);
    });

    test('awaitChange returns true when something changes', async () => {
      const folder = await newFolder();
      const cursor = await remote.latestCursor();
      const woken = remote.awaitChange(cursor, 30_000);
      await remote.write(path(`${folder}/news`), bodyOf('x'), ANY);
      expect(await woken).toBe(true);
    });

    test('awaitChange ends when its signal is aborted', async () => {
      const abort = new AbortController();
      const waiting = remote.awaitChange(await remote.latestCursor(), 30_000, abort.signal);
      const reason = new Error('enough');
      abort.abort(reason);
      await expect(waiting).rejects.toBe(reason);
    });

    test('changesSince with an invalid cursor fails with reset', async () => {
      await expect(remote.changesSince('no cursor of theirs')).rejects.toMatchObject({ failure: 'reset' });
    });
  });

  describe('downloads', () => {
    test('download returns a whole file and ranges of it', async () => {
      const file = await remote.write(path(`${await newFolder()}/digits`), bodyOf('0123456789'), ANY);
      expect(await read(remote, file)).toBe('0123456789');
      expect(await read(remote, file, { start: 3, end: 5 })).toBe('34');
      expect(await read(remote, file, { start: 8, end: 10 })).toBe('89');
    });

    test('download of an empty file returns no bytes', async () => {
      const file = await remote.write(path(`${await newFolder()}/empty`), bodyOf(''), ANY);
      expect(await read(remote, file)).toBe('');
    });

    test('download returns the given revision after a newer one was written', async () => {
      const at = path(`${await newFolder()}/f`);
      const old = await remote.write(at, bodyOf('old'), ANY);
      await remote.write(at, bodyOf('newer'), ANY);
      expect(await read(remote, old)).toBe('old');
    });

    test('download of a permanently removed file fails with not-found', async () => {
      const file = await remote.write(path(`${await newFolder()}/f`), bodyOf('x'), ANY);
      await remote.remove(file.path, { permanent: true });
      await expect(remote.download(file, undefined)).rejects.toMatchObject({ failure: 'not-found' });
    });
  });
}

async function allSince(
  remote: Remote,
  since: string,
): Promise<Pick<Page<FeedChange>, 'changes' | 'cursor'>> {
  let page = await remote.changesSince(since);
  const changes = [...page.changes];
  while (page.hasMore) {
    page = await remote.changesSince(page.cursor);
    changes.push(...page.changes);
  }
  return { changes, cursor: page.cursor };
}

async function read(
  remote: Remote,
  file: FileEntry,
  range?: { start: number; end: number },
): Promise<string> {
  const bytes = await readAll(await remote.download(file, range), file.sizeBytes);
  return bytes.toString('utf8');
}
