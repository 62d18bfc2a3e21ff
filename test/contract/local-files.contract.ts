import { describe, expect, test } from 'vitest';
import { ASIDE_BYTES_MAX, type AsideFile, type Asides, AsideTooLarge } from '../../src/state/local-files.ts';
import { ROOT } from '../../src/util/path.ts';
import { path } from '../support/paths.ts';

export function asideAt(at: string, content: Uint8Array): AsideFile {
  return { path: path(at), id: `aside:${at}`, rev: 'r1', modifiedMs: 1_000, sizeBytes: content.byteLength };
}

export const bytes = (text: string) => new TextEncoder().encode(text);

async function put(asides: Asides, ...places: readonly string[]): Promise<void> {
  for (const at of places) await asides.put(asideAt(at, bytes(at)), bytes(at));
}

async function textAt(asides: Asides, at: string): Promise<string | undefined> {
  const content = await asides.read(path(at));
  return content && new TextDecoder().decode(content);
}

/** Which of `places` are there, with a content that is theirs. */
async function present(asides: Asides, places: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const at of places) {
    const file = await asides.get(path(at));
    const content = await asides.read(path(at));
    expect(content?.byteLength).toBe(file?.sizeBytes);
    if (file) found.push(at);
  }
  return found;
}

/** What every driver of `Asides` holds to; `open` gives an empty store. */
export function asidesContract(driver: string, open: () => Promise<Asides>): void {
  describe(`set-aside files in ${driver}`, () => {
    test('what was put is told and read as it was given, in any letter case', async () => {
      const asides = await open();
      const content = Uint8Array.from({ length: 256 }, (_, index) => index);
      await asides.put(asideAt('/Ä/._New', content), content);
      expect(await asides.get(path('/ä/._NEW'))).toEqual(asideAt('/Ä/._New', content));
      expect(new Uint8Array((await asides.read(path('/ä/._NEW'))) ?? [])).toEqual(content);
      expect(await asides.get(path('/ä'))).toBeUndefined();
      expect(await asides.read(path('/none'))).toBeUndefined();
    });

    test('a later one takes the place of an earlier; an empty one is there', async () => {
      const asides = await open();
      await put(asides, '/a/._x', '/A/._X');
      expect(await textAt(asides, '/a/._x')).toBe('/A/._X');
      await asides.put(asideAt('/a/._x', bytes('')), bytes(''));
      expect(await textAt(asides, '/a/._x')).toBe('');
      expect(await asides.in(path('/a'))).toHaveLength(1);
    });

    test('a folder has those directly in it', async () => {
      const asides = await open();
      await put(asides, '/._x', '/a/._x', '/A/._y', '/a/b/._z', '/ab/._x', '/_/._x');
      const named = async (at: string) => (await asides.in(path(at))).map((file) => file.path).sort();
      expect(await named('/')).toEqual(['/._x']);
      expect(await named('/a')).toEqual(['/A/._y', '/a/._x']);
      expect(await named('/_')).toEqual(['/_/._x']);
    });

    test('a touch moves the time and nothing else', async () => {
      const asides = await open();
      await put(asides, '/._x');
      await asides.touch(path('/._X'), 5_000);
      await asides.touch(path('/none'), 5_000);
      expect(await asides.get(path('/._x'))).toEqual({
        ...asideAt('/._x', bytes('/._x')),
        modifiedMs: 5_000,
      });
    });

    test('forgetting a folder drops what is at it and below it, and nothing beside it', async () => {
      const asides = await open();
      const places = ['/a/._x', '/a/b/._y', '/ab/._x', '/a!/._x', '/a%/._x', '/._a'];
      await put(asides, ...places);
      const below = (await asides.within(path('/A'))).map((file) => file.path);
      expect([...below].sort()).toEqual(['/a/._x', '/a/b/._y']);
      await asides.forget(path('/A'));
      expect(await present(asides, places)).toEqual(['/ab/._x', '/a!/._x', '/a%/._x', '/._a']);
      await asides.forget(ROOT);
      expect(await present(asides, places)).toEqual([]);
    });

    test('a move takes along what is below and replaces what is at the target', async () => {
      const asides = await open();
      await put(asides, '/A/._x', '/a/B/._y', '/ab/._x', '/to/._x', '/to/._old', '/toto/._x');
      await asides.move(path('/a'), path('/To'));
      const places = ['/a/._x', '/a/b/._y', '/ab/._x', '/to/._x', '/to/b/._y', '/to/._old', '/toto/._x'];
      expect(await present(asides, places)).toEqual(['/ab/._x', '/to/._x', '/to/b/._y', '/toto/._x']);
      expect(await asides.get(path('/to/b/._y'))).toEqual({
        ...asideAt('/To/B/._y', bytes('/a/B/._y')),
        id: 'aside:/a/B/._y',
      });
      expect(await textAt(asides, '/to/._x')).toBe('/A/._x');
      expect((await asides.in(path('/to'))).map((file) => file.path)).toEqual(['/To/._x']);
    });

    test('a move that only changes letter case keeps all and shows the new names', async () => {
      const asides = await open();
      await put(asides, '/a/._x', '/a/b/._y');
      await asides.move(path('/a'), path('/A'));
      expect((await asides.get(path('/a/._x')))?.path).toBe('/A/._x');
      expect(await textAt(asides, '/a/b/._y')).toBe('/a/b/._y');
    });

    test('a copy gets new ids, replaces what is at the target and is its own', async () => {
      const asides = await open();
      await put(asides, '/a/._x', '/a/b/._y', '/to/._old');
      let made = 0;
      await asides.copy(path('/a'), path('/to'), () => `new:${++made}`);
      const places = ['/a/._x', '/a/b/._y', '/to/._x', '/to/b/._y', '/to/._old'];
      expect(await present(asides, places)).toEqual(places.slice(0, 4));
      const ids = await Promise.all(
        places.slice(0, 4).map(async (at) => (await asides.get(path(at)))?.id ?? at),
      );
      expect(ids.slice(0, 2)).toEqual(['aside:/a/._x', 'aside:/a/b/._y']);
      expect(ids.slice(2).sort()).toEqual(['new:1', 'new:2']);
      await asides.forget(path('/a'));
      expect(await textAt(asides, '/to/b/._y')).toBe('/a/b/._y');
    });

    test('a store that never had a set-aside file copies, moves and forgets nothing without complaint', async () => {
      const asides = await open();
      await asides.copy(path('/a'), path('/b'), () => 'new:1');
      await asides.move(path('/a'), path('/b'));
      await asides.forget(path('/b'));
      await asides.touch(path('/b'), 5_000);
      expect(await asides.read(path('/b'))).toBeUndefined();
      expect(await asides.in(ROOT)).toEqual([]);
    });

    test('a single file moves and copies', async () => {
      const asides = await open();
      await put(asides, '/a/._x', '/b/._y');
      await asides.move(path('/a/._x'), path('/b/._y'));
      await asides.copy(path('/b/._y'), path('/._z'), () => 'new:1');
      expect(await textAt(asides, '/b/._y')).toBe('/a/._x');
      expect(await textAt(asides, '/._z')).toBe('/a/._x');
      expect(await present(asides, ['/a/._x'])).toEqual([]);
    });

    test('one that is too large is refused, and what was there stays', async () => {
      const asides = await open();
      await put(asides, '/._x');
      const content = new Uint8Array(ASIDE_BYTES_MAX + 1);
      await expect(asides.put(asideAt('/._x', content), content)).rejects.toThrow(AsideTooLarge);
      expect(await textAt(asides, '/._x')).toBe('/._x');
      await asides.put(asideAt('/._y', content.subarray(1)), content.subarray(1));
      expect((await asides.read(path('/._y')))?.byteLength).toBe(ASIDE_BYTES_MAX);
    });
  });
}

/** `open` gives an empty store that keeps 100 bytes in all. */
export function asidesLimitContract(driver: string, open: () => Promise<Asides>): void {
  const content = (sizeBytes: number) => new Uint8Array(sizeBytes);
  const store = async (asides: Asides, at: string, sizeBytes: number) =>
    asides.put(asideAt(at, content(sizeBytes)), content(sizeBytes));

  describe(`the limit of set-aside files in ${driver}`, () => {
    test('beyond the limit the oldest make room', async () => {
      const asides = await open();
      for (const at of ['/1', '/2', '/3', '/4']) await store(asides, at, 25);
      await store(asides, '/1', 25);
      expect(await present(asides, ['/1', '/2', '/3', '/4'])).toHaveLength(4);
      await store(asides, '/5', 26);
      expect(await present(asides, ['/1', '/2', '/3', '/4', '/5'])).toEqual(['/1', '/4', '/5']);
    });

    test('what was replaced, forgotten, or replaced by a move takes no room', async () => {
      const asides = await open();
      for (const sizeBytes of [60, 90, 40]) await store(asides, '/1', sizeBytes);
      await store(asides, '/2', 50);
      await asides.forget(path('/2'));
      await store(asides, '/3', 60);
      await asides.move(path('/3'), path('/1'));
      await store(asides, '/4', 40);
      expect(await present(asides, ['/1', '/4'])).toEqual(['/1', '/4']);
    });

    test('copies take room', async () => {
      const asides = await open();
      await store(asides, '/1', 60);
      await asides.copy(path('/1'), path('/2'), () => 'new:1');
      expect(await present(asides, ['/1', '/2'])).toEqual(['/2']);
    });
  });
}
