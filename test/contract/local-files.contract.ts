import { describe, expect, test } from 'vitest';
import { type LocalFile, type LocalFileStore, LocalFileTooLarge } from '../../src/state/local-files.ts';
import { ROOT } from '../../src/util/path.ts';
import { aHundredAtOnce } from '../support/a-hundred-at-once.ts';
import { path } from '../support/paths.ts';

export function localFileAt(at: string, content: Uint8Array): LocalFile {
  return { path: path(at), id: `aside:${at}`, rev: 'r1', modifiedMs: 1_000, sizeBytes: content.byteLength };
}

export const bytes = (text: string) => new TextEncoder().encode(text);

async function put(localFiles: LocalFileStore, ...places: readonly string[]): Promise<void> {
  for (const at of places) await localFiles.put(localFileAt(at, bytes(at)), bytes(at));
}

async function textAt(localFiles: LocalFileStore, at: string): Promise<string | undefined> {
  const content = await localFiles.read(path(at));
  return content && new TextDecoder().decode(content);
}

/** Returns those of `places` that have a local file, and checks the size of its content. */
async function present(localFiles: LocalFileStore, places: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const at of places) {
    const file = await localFiles.get(path(at));
    const content = await localFiles.read(path(at));
    expect(content?.byteLength).toBe(file?.sizeBytes);
    if (file) found.push(at);
  }
  return found;
}

/** Tests an implementation of `LocalFileStore`; `open` returns an empty store. */
export function localFilesContract(driver: string, open: () => Promise<LocalFileStore>): void {
  describe(`local files in ${driver}`, () => {
    test('a local file is returned and read unchanged, in any letter case', async () => {
      const localFiles = await open();
      const content = Uint8Array.from({ length: 256 }, (_, index) => index);
      await localFiles.put(localFileAt('/Ä/._New', content), content);
      expect(await localFiles.get(path('/ä/._NEW'))).toEqual(localFileAt('/Ä/._New', content));
      expect(new Uint8Array((await localFiles.read(path('/ä/._NEW'))) ?? [])).toEqual(content);
      expect(await localFiles.get(path('/ä'))).toBeUndefined();
      expect(await localFiles.read(path('/none'))).toBeUndefined();
    });

    test('a local file replaces an earlier one at its path, also with empty content', async () => {
      const localFiles = await open();
      await put(localFiles, '/a/._x', '/A/._X');
      expect(await textAt(localFiles, '/a/._x')).toBe('/A/._X');
      await localFiles.put(localFileAt('/a/._x', bytes('')), bytes(''));
      expect(await textAt(localFiles, '/a/._x')).toBe('');
      expect(await localFiles.in(path('/a'))).toHaveLength(1);
    });

    test('a listing of local files has those directly in the folder', async () => {
      const localFiles = await open();
      await put(localFiles, '/._x', '/a/._x', '/A/._y', '/a/b/._z', '/ab/._x', '/_/._x');
      const named = async (at: string) => (await localFiles.in(path(at))).map((file) => file.path).sort();
      expect(await named('/')).toEqual(['/._x']);
      expect(await named('/a')).toEqual(['/A/._y', '/a/._x']);
      expect(await named('/_')).toEqual(['/_/._x']);
    });

    test('a listing of local files shows each change that ended before it', async () => {
      const localFiles = await open();
      const listed = async (at: string) =>
        (await localFiles.in(path(at))).map((file) => `${file.path} ${file.modifiedMs}`).sort();
      expect(await listed('/a')).toEqual([]);
      await put(localFiles, '/a/._x');
      expect(await listed('/a')).toEqual(['/a/._x 1000']);
      await localFiles.touch(path('/a/._x'), 2_000);
      expect(await listed('/a')).toEqual(['/a/._x 2000']);
      await localFiles.copy(path('/a'), path('/b'), () => 'aside:copy');
      expect([await listed('/a'), await listed('/b')]).toEqual([['/a/._x 2000'], ['/b/._x 2000']]);
      await localFiles.move(path('/a'), path('/c'));
      expect([await listed('/a'), await listed('/c')]).toEqual([[], ['/c/._x 2000']]);
      await localFiles.forget(path('/c'));
      expect([await listed('/b'), await listed('/c')]).toEqual([['/b/._x 2000'], []]);
    });

    test('touch changes the modification time and nothing else', async () => {
      const localFiles = await open();
      await put(localFiles, '/._x');
      await localFiles.touch(path('/._X'), 5_000);
      await localFiles.touch(path('/none'), 5_000);
      expect(await localFiles.get(path('/._x'))).toEqual({
        ...localFileAt('/._x', bytes('/._x')),
        modifiedMs: 5_000,
      });
    });

    test('forget of a folder drops the local files in and below it, and none beside it', async () => {
      const localFiles = await open();
      const places = ['/a/._x', '/a/b/._y', '/ab/._x', '/a!/._x', '/a%/._x', '/._a'];
      await put(localFiles, ...places);
      const below = (await localFiles.within(path('/A'))).map((file) => file.path);
      expect([...below].sort()).toEqual(['/a/._x', '/a/b/._y']);
      await localFiles.forget(path('/A'));
      expect(await present(localFiles, places)).toEqual(['/ab/._x', '/a!/._x', '/a%/._x', '/._a']);
      await localFiles.forget(ROOT);
      expect(await present(localFiles, places)).toEqual([]);
    });

    test('forget of 2,500 local files drops all of them and returns their ids', async () => {
      const localFiles = await open();
      const places = Array.from({ length: 2_500 }, (_, index) => `/a/._${index}`);
      await aHundredAtOnce().addAll(places.map((at) => () => put(localFiles, at)));
      const ids = await localFiles.forget(path('/a'));
      expect([...ids].sort()).toEqual(places.map((at) => `aside:${at}`).sort());
      expect(await localFiles.within(ROOT)).toEqual([]);
      expect(await localFiles.forget(path('/a'))).toEqual([]);
    });

    test('at most the wanted number of local files in and below a folder is returned', async () => {
      const localFiles = await open();
      await put(localFiles, '/a', '/a/._x', '/a/b/._y', '/a/b/._z', '/b/._x');
      const counts = [1, 2, 3, 4, 5].map(async (max) => (await localFiles.within(path('/a'), max)).length);
      expect(await Promise.all(counts)).toEqual([1, 2, 3, 4, 4]);
    });

    test('move takes all local files below the source along and replaces those at the target', async () => {
      const localFiles = await open();
      await put(localFiles, '/A/._x', '/a/B/._y', '/ab/._x', '/to/._x', '/to/._old', '/toto/._x');
      await localFiles.move(path('/a'), path('/To'));
      const places = ['/a/._x', '/a/b/._y', '/ab/._x', '/to/._x', '/to/b/._y', '/to/._old', '/toto/._x'];
      expect(await present(localFiles, places)).toEqual(['/ab/._x', '/to/._x', '/to/b/._y', '/toto/._x']);
      expect(await localFiles.get(path('/to/b/._y'))).toEqual({
        ...localFileAt('/To/B/._y', bytes('/a/B/._y')),
        id: 'aside:/a/B/._y',
      });
      expect(await textAt(localFiles, '/to/._x')).toBe('/A/._x');
      expect((await localFiles.in(path('/to'))).map((file) => file.path)).toEqual(['/To/._x']);
    });

    test('a move that changes only letter case keeps all local files and shows the new names', async () => {
      const localFiles = await open();
      await put(localFiles, '/a/._x', '/a/b/._y');
      await localFiles.move(path('/a'), path('/A'));
      expect((await localFiles.get(path('/a/._x')))?.path).toBe('/A/._x');
      expect(await textAt(localFiles, '/a/b/._y')).toBe('/a/b/._y');
    });

    test('copy gives new ids, replaces the local files at the target and is independent of its source', async () => {
      const localFiles = await open();
      await put(localFiles, '/a/._x', '/a/b/._y', '/to/._old');
      let made = 0;
      await localFiles.copy(path('/a'), path('/to'), () => `new:${++made}`);
      const places = ['/a/._x', '/a/b/._y', '/to/._x', '/to/b/._y', '/to/._old'];
      expect(await present(localFiles, places)).toEqual(places.slice(0, 4));
      const ids = await Promise.all(
        places.slice(0, 4).map(async (at) => (await localFiles.get(path(at)))?.id ?? at),
      );
      expect(ids.slice(0, 2)).toEqual(['aside:/a/._x', 'aside:/a/b/._y']);
      expect(ids.slice(2).sort()).toEqual(['new:1', 'new:2']);
      await localFiles.forget(path('/a'));
      expect(await textAt(localFiles, '/to/b/._y')).toBe('/a/b/._y');
    });

    test('copy, move, forget and touch in an empty store succeed', async () => {
      const localFiles = await open();
      await localFiles.copy(path('/a'), path('/b'), () => 'new:1');
      await localFiles.move(path('/a'), path('/b'));
      await localFiles.forget(path('/b'));
      await localFiles.touch(path('/b'), 5_000);
      expect(await localFiles.read(path('/b'))).toBeUndefined();
      expect(await localFiles.in(ROOT)).toEqual([]);
    });

    test('a single local file can be moved and copied', async () => {
      const localFiles = await open();
      await put(localFiles, '/a/._x', '/b/._y');
      await localFiles.move(path('/a/._x'), path('/b/._y'));
      await localFiles.copy(path('/b/._y'), path('/._z'), () => 'new:1');
      expect(await textAt(localFiles, '/b/._y')).toBe('/a/._x');
      expect(await textAt(localFiles, '/._z')).toBe('/a/._x');
      expect(await present(localFiles, ['/a/._x'])).toEqual([]);
    });

    test('a local file that is too large is refused, and the old one stays', async () => {
      const localFiles = await open();
      await put(localFiles, '/._x');
      const content = new Uint8Array(localFiles.fileBytesMax + 1);
      await expect(localFiles.put(localFileAt('/._x', content), content)).rejects.toThrow(LocalFileTooLarge);
      expect(await textAt(localFiles, '/._x')).toBe('/._x');
      await localFiles.put(localFileAt('/._y', content.subarray(1)), content.subarray(1));
      expect((await localFiles.read(path('/._y')))?.byteLength).toBe(localFiles.fileBytesMax);
    });
  });
}

/** The limit of the stores of `localFilesLimitContract`, in bytes. */
export const LIMIT_BYTES = 1_020_000;

/** Tests the total limit of a store; `open` returns an empty store that keeps `LIMIT_BYTES`. */
export function localFilesLimitContract(driver: string, open: () => Promise<LocalFileStore>): void {
  const content = (sizeBytes: number) => new Uint8Array(sizeBytes);
  const store = async (localFiles: LocalFileStore, at: string, sizeBytes: number) =>
    localFiles.put(localFileAt(at, content(sizeBytes)), content(sizeBytes));

  describe(`the limit of local files in ${driver}`, () => {
    test('beyond the limit the oldest local files are dropped', async () => {
      const localFiles = await open();
      for (const at of ['/1', '/2', '/3', '/4']) await store(localFiles, at, 250_000);
      await store(localFiles, '/1', 250_000);
      expect(await present(localFiles, ['/1', '/2', '/3', '/4'])).toHaveLength(4);
      await store(localFiles, '/5', 280_000);
      expect(await present(localFiles, ['/1', '/2', '/3', '/4', '/5'])).toEqual(['/1', '/4', '/5']);
    });

    test('local files that were replaced or forgotten do not count toward the limit', async () => {
      const localFiles = await open();
      for (const sizeBytes of [600_000, 900_000, 400_000]) await store(localFiles, '/1', sizeBytes);
      await store(localFiles, '/2', 500_000);
      await localFiles.forget(path('/2'));
      await store(localFiles, '/3', 600_000);
      await localFiles.move(path('/3'), path('/1'));
      await store(localFiles, '/4', 400_000);
      expect(await present(localFiles, ['/1', '/4'])).toEqual(['/1', '/4']);
    });

    test('copies of local files count toward the limit', async () => {
      const localFiles = await open();
      await store(localFiles, '/1', 600_000);
      await localFiles.copy(path('/1'), path('/2'), () => 'new:1');
      expect(await present(localFiles, ['/1', '/2'])).toEqual(['/2']);
    });

    test.each([
      [2_000, 'empty', '/._'],
      [200, 'empty ones with long paths', `/${'x'.repeat(2_000)}/._`],
    ])('of %i local files, %s, only the newest are kept', async (count, _, stem) => {
      const localFiles = await open();
      const places = Array.from({ length: count }, (_each, index) => `${stem}${index}`);
      for (const at of places) await store(localFiles, at, 0);
      const kept = await present(localFiles, places);
      expect(kept.length).toBeLessThan(count);
      expect(kept).toEqual(places.slice(-kept.length));
    });

    test('a move to a longer path counts the longer path', async () => {
      const localFiles = await open();
      for (const at of ['/a/1', '/a/2']) await store(localFiles, at, 505_000);
      expect(await localFiles.in(path('/a'))).toHaveLength(2);
      const folder = path(`/${'x'.repeat(2_000)}`);
      await localFiles.move(path('/a'), folder);
      expect(await localFiles.in(folder)).toHaveLength(1);
    });
  });
}
