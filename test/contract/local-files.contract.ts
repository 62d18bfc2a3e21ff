import { describe, expect, test } from 'vitest';
import {
  LOCAL_FILE_BYTES_MAX,
  type LocalFile,
  type LocalFileStore,
  LocalFileTooLarge,
} from '../../src/state/local-files.ts';
import { ROOT } from '../../src/util/path.ts';
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

/** Which of `places` are there, with a content that is theirs. */
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

/** What every driver of `LocalFileStore` holds to; `open` gives an empty store. */
export function localFilesContract(driver: string, open: () => Promise<LocalFileStore>): void {
  describe(`local files in ${driver}`, () => {
    test('what was put is told and read as it was given, in any letter case', async () => {
      const localFiles = await open();
      const content = Uint8Array.from({ length: 256 }, (_, index) => index);
      await localFiles.put(localFileAt('/Ä/._New', content), content);
      expect(await localFiles.get(path('/ä/._NEW'))).toEqual(localFileAt('/Ä/._New', content));
      expect(new Uint8Array((await localFiles.read(path('/ä/._NEW'))) ?? [])).toEqual(content);
      expect(await localFiles.get(path('/ä'))).toBeUndefined();
      expect(await localFiles.read(path('/none'))).toBeUndefined();
    });

    test('a later one takes the place of an earlier; an empty one is there', async () => {
      const localFiles = await open();
      await put(localFiles, '/a/._x', '/A/._X');
      expect(await textAt(localFiles, '/a/._x')).toBe('/A/._X');
      await localFiles.put(localFileAt('/a/._x', bytes('')), bytes(''));
      expect(await textAt(localFiles, '/a/._x')).toBe('');
      expect(await localFiles.in(path('/a'))).toHaveLength(1);
    });

    test('a folder has those directly in it', async () => {
      const localFiles = await open();
      await put(localFiles, '/._x', '/a/._x', '/A/._y', '/a/b/._z', '/ab/._x', '/_/._x');
      const named = async (at: string) => (await localFiles.in(path(at))).map((file) => file.path).sort();
      expect(await named('/')).toEqual(['/._x']);
      expect(await named('/a')).toEqual(['/A/._y', '/a/._x']);
      expect(await named('/_')).toEqual(['/_/._x']);
    });

    test('a touch moves the time and nothing else', async () => {
      const localFiles = await open();
      await put(localFiles, '/._x');
      await localFiles.touch(path('/._X'), 5_000);
      await localFiles.touch(path('/none'), 5_000);
      expect(await localFiles.get(path('/._x'))).toEqual({
        ...localFileAt('/._x', bytes('/._x')),
        modifiedMs: 5_000,
      });
    });

    test('forgetting a folder drops what is at it and below it, and nothing beside it', async () => {
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

    test('a move takes along what is below and replaces what is at the target', async () => {
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

    test('a move that only changes letter case keeps all and shows the new names', async () => {
      const localFiles = await open();
      await put(localFiles, '/a/._x', '/a/b/._y');
      await localFiles.move(path('/a'), path('/A'));
      expect((await localFiles.get(path('/a/._x')))?.path).toBe('/A/._x');
      expect(await textAt(localFiles, '/a/b/._y')).toBe('/a/b/._y');
    });

    test('a copy gets new ids, replaces what is at the target and is its own', async () => {
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

    test('a store that never had a local file copies, moves and forgets nothing without complaint', async () => {
      const localFiles = await open();
      await localFiles.copy(path('/a'), path('/b'), () => 'new:1');
      await localFiles.move(path('/a'), path('/b'));
      await localFiles.forget(path('/b'));
      await localFiles.touch(path('/b'), 5_000);
      expect(await localFiles.read(path('/b'))).toBeUndefined();
      expect(await localFiles.in(ROOT)).toEqual([]);
    });

    test('a single file moves and copies', async () => {
      const localFiles = await open();
      await put(localFiles, '/a/._x', '/b/._y');
      await localFiles.move(path('/a/._x'), path('/b/._y'));
      await localFiles.copy(path('/b/._y'), path('/._z'), () => 'new:1');
      expect(await textAt(localFiles, '/b/._y')).toBe('/a/._x');
      expect(await textAt(localFiles, '/._z')).toBe('/a/._x');
      expect(await present(localFiles, ['/a/._x'])).toEqual([]);
    });

    test('one that is too large is refused, and what was there stays', async () => {
      const localFiles = await open();
      await put(localFiles, '/._x');
      const content = new Uint8Array(LOCAL_FILE_BYTES_MAX + 1);
      await expect(localFiles.put(localFileAt('/._x', content), content)).rejects.toThrow(LocalFileTooLarge);
      expect(await textAt(localFiles, '/._x')).toBe('/._x');
      await localFiles.put(localFileAt('/._y', content.subarray(1)), content.subarray(1));
      expect((await localFiles.read(path('/._y')))?.byteLength).toBe(LOCAL_FILE_BYTES_MAX);
    });
  });
}

/** `open` gives an empty store that keeps 100 bytes in all. */
export function localFilesLimitContract(driver: string, open: () => Promise<LocalFileStore>): void {
  const content = (sizeBytes: number) => new Uint8Array(sizeBytes);
  const store = async (localFiles: LocalFileStore, at: string, sizeBytes: number) =>
    localFiles.put(localFileAt(at, content(sizeBytes)), content(sizeBytes));

  describe(`the limit of local files in ${driver}`, () => {
    test('beyond the limit the oldest make room', async () => {
      const localFiles = await open();
      for (const at of ['/1', '/2', '/3', '/4']) await store(localFiles, at, 25);
      await store(localFiles, '/1', 25);
      expect(await present(localFiles, ['/1', '/2', '/3', '/4'])).toHaveLength(4);
      await store(localFiles, '/5', 26);
      expect(await present(localFiles, ['/1', '/2', '/3', '/4', '/5'])).toEqual(['/1', '/4', '/5']);
    });

    test('what was replaced, forgotten, or replaced by a move takes no room', async () => {
      const localFiles = await open();
      for (const sizeBytes of [60, 90, 40]) await store(localFiles, '/1', sizeBytes);
      await store(localFiles, '/2', 50);
      await localFiles.forget(path('/2'));
      await store(localFiles, '/3', 60);
      await localFiles.move(path('/3'), path('/1'));
      await store(localFiles, '/4', 40);
      expect(await present(localFiles, ['/1', '/4'])).toEqual(['/1', '/4']);
    });

    test('copies take room', async () => {
      const localFiles = await open();
      await store(localFiles, '/1', 60);
      await localFiles.copy(path('/1'), path('/2'), () => 'new:1');
      expect(await present(localFiles, ['/1', '/2'])).toEqual(['/2']);
    });
  });
}
