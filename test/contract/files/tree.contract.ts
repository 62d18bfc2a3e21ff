import { beforeAll, describe, expect, test } from 'vitest';
import type { Entry, Files } from '../../../src/drive/files.ts';
import { join, type Path, ROOT } from '../../../src/util/path.ts';
import { faultOf } from '../../support/fault-of.ts';
import { path } from '../../support/paths.ts';
import type { FilesUnderTest } from './files-under-test.ts';

/** Tests removing, moving and copying. */
export function treeContract(drive: FilesUnderTest): void {
  let files: Files;
  beforeAll(() => {
    files = drive.files;
  });
  const { newFolder, put, fileAt, textAt, mark, isMarked, namesIn } = drive;

  describe('removing', () => {
    test.each([true, false])(
      'a file is removed only if it has the given revision (recoverable: %s)',
      async (recoverable) => {
        const at = join(await newFolder(), 'f');
        const rev = async (text: string) => {
          const { entry } = await put(at, text);
          return entry.kind === 'file' ? entry.rev : '';
        };
        const [first, second] = [await rev('x'), await rev('other')];
        expect(await faultOf(files.remove(at, { recoverable, rev: first }))).toBe('changed');
        expect(await files.stat(at)).toMatchObject({ rev: second });
        await files.remove(at, { recoverable, rev: second });
        expect(await files.stat(at)).toBeUndefined();
      },
    );

    test.each([true, false])(
      'files and whole folders can be removed, and the root cannot (recoverable: %s)',
      async (recoverable) => {
        const folder = await newFolder();
        await put(join(folder, 'f'), 'x');
        await files.remove(join(folder, 'F'), { recoverable });
        expect(await files.stat(join(folder, 'f'))).toBeUndefined();
        expect(await faultOf(files.remove(join(folder, 'f'), { recoverable }))).toBe('not-found');
        await put(join(folder, 'g'), 'x');
        await files.remove(folder, { recoverable });
        expect(await files.stat(join(folder, 'g'))).toBeUndefined();
        expect(await faultOf(files.list(folder))).toBe('not-found');
        expect(await faultOf(files.remove(ROOT, { recoverable }))).toBe('forbidden');
      },
    );
  });

  describe('moving and copying', () => {
    const whole = { overwrite: false, shallow: false };

    test('a file can be moved and copied, and keeps its id and properties when moved', async () => {
      const folder = await newFolder();
      await mark((await put(join(folder, 'a'), 'text')).entry);
      const moved = await files.move(join(folder, 'a'), join(folder, 'B'), { overwrite: false });
      expect(moved).toMatchObject({ created: true, entry: { name: 'B' } });
      expect(await isMarked(moved.entry)).toBe(true);
      const copied = await files.copy(join(folder, 'b'), join(folder, 'c'), whole);
      expect(copied.entry.id).not.toBe(moved.entry.id);
      expect(await namesIn(folder)).toEqual(['B', 'c']);
      expect([await textAt(join(folder, 'b')), await textAt(join(folder, 'c'))]).toEqual(['text', 'text']);
    });

    test('a folder can be moved and copied with its content, and copied without', async () => {
      const folder = await newFolder();
      await files.createFolder(join(folder, 'a'));
      await put(path(`${folder}/a/f`), 'x');
      await files.copy(join(folder, 'a'), join(folder, 'b'), whole);
      expect(await namesIn(join(folder, 'b'))).toEqual(['f']);
      await files.copy(join(folder, 'a'), join(folder, 'empty'), { overwrite: false, shallow: true });
      expect(await namesIn(join(folder, 'empty'))).toEqual([]);
      await files.move(join(folder, 'b'), path(`${folder}/empty/b`), { overwrite: false });
      expect(await textAt(path(`${folder}/empty/b/f`))).toBe('x');
      expect(await files.stat(join(folder, 'b'))).toBeUndefined();
    });

    test.each(['move', 'copy'] as const)(
      'a %s onto an existing file or folder needs overwrite and replaces it',
      async (what) => {
        const folder = await newFolder();
        for (const name of ['from', 'onto', 'tree'])
          await put(join(folder, name === 'tree' ? 'x' : name), name);
        const go = (from: string, to: string, overwrite: boolean) =>
          what === 'move'
            ? files.move(join(folder, from), join(folder, to), { overwrite })
            : files.copy(join(folder, from), join(folder, to), { overwrite, shallow: false });
        expect(await faultOf(go('from', 'onto', false))).toBe('exists');
        expect(await textAt(join(folder, 'onto'))).toBe('onto');
        expect(await go('from', 'onto', true)).toMatchObject({ created: false });
        expect(await textAt(join(folder, 'onto'))).toBe('from');
        expect(await namesIn(folder)).toEqual(what === 'move' ? ['onto', 'x'] : ['from', 'onto', 'x']);
        await files.createFolder(join(folder, 'tree'));
        await put(path(`${folder}/tree/inside`), 'i');
        await go('x', 'tree', true);
        expect(await textAt(join(folder, 'tree'))).toBe('tree');
        await files.createFolder(join(folder, 'again'));
        await put(path(`${folder}/again/inside`), 'i');
        await go('again', 'tree', true);
        expect(await namesIn(join(folder, 'tree'))).toEqual(['inside']);
      },
    );

    test('moving and copying into itself, onto its folder, from or to a missing path, and of the root is refused', async () => {
      const folder = await newFolder();
      await files.createFolder(join(folder, 'a'));
      await put(join(folder, 'f'), 'x');
      const [a, f] = [join(folder, 'a'), join(folder, 'f')];
      const faults: Record<string, string> = {};
      for (const [name, from, to] of [
        ['into itself', a, path(`${a}/b`)],
        ['onto itself', f, f],
        ['onto its folder', f, folder],
        ['from nowhere', join(folder, 'none'), join(folder, 'g')],
        ['to nowhere', f, path(`${folder}/none/g`)],
        ['the root', ROOT, join(folder, 'g')],
      ] as const) {
        const moved = await faultOf(files.move(from, to, { overwrite: true }));
        const copied = await faultOf(files.copy(from, to, { overwrite: true, shallow: false }));
        faults[name] = `${moved} ${copied}`;
      }
      expect(faults).toEqual({
        'into itself': 'into-itself into-itself',
        'onto itself': 'into-itself into-itself',
        'onto its folder': 'into-itself into-itself',
        'from nowhere': 'not-found not-found',
        'to nowhere': 'parent-missing parent-missing',
        'the root': 'forbidden forbidden',
      });
      expect(await namesIn(folder)).toEqual(['a', 'f']);
    });

    test.each(['move', 'copy'] as const)(
      'a %s is refused as changed unless source and target have the given revisions',
      async (what) => {
        const folder = await newFolder();
        const [from, to] = [join(folder, 'from'), join(folder, 'to')];
        const go = (options: { rev?: string; targetRev?: string }) =>
          what === 'move'
            ? files.move(from, to, { overwrite: true, ...options })
            : files.copy(from, to, { overwrite: true, shallow: false, ...options });
        await put(from, 'first');
        await put(to, 'old first');
        const [staleRev, staleTarget] = [(await fileAt(from)).rev, (await fileAt(to)).rev];
        await put(from, 'second');
        await put(to, 'old second');
        const [rev, targetRev] = [(await fileAt(from)).rev, (await fileAt(to)).rev];
        expect(await faultOf(go({ rev: staleRev }))).toBe('changed');
        expect(await faultOf(go({ rev, targetRev: staleTarget }))).toBe('changed');
        expect([await textAt(from), await textAt(to)]).toEqual(['second', 'old second']);
        await go({ rev, targetRev });
        expect(await textAt(to)).toBe('second');
      },
    );

    test('a move can change the letter case of a file or folder', async () => {
      const folder = await newFolder();
      await put(join(folder, 'readme.md'), 'x');
      await files.createFolder(join(folder, 'docs'));
      await put(path(`${folder}/docs/f`), 'y');
      const { entry } = await files.move(join(folder, 'readme.md'), join(folder, 'README.md'), {
        overwrite: false,
      });
      expect(entry.name).toBe('README.md');
      await files.move(join(folder, 'docs'), join(folder, 'Docs'), { overwrite: true });
      expect(await namesIn(folder)).toEqual(['Docs', 'README.md']);
      expect(await textAt(path(`${folder}/Docs/f`))).toBe('y');
    });

    test('copied and moved files keep their properties and modification times', async () => {
      const folder = await newFolder();
      const { state } = drive;
      const modifiedMs = Date.UTC(2001, 1, 1);
      await files.createFolder(join(folder, 'a'));
      const { entry } = await put(path(`${folder}/a/f`), 'x');
      await state.properties.change(entry.id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
      await files.setModified(path(`${folder}/a/f`), modifiedMs);
      await files.copy(join(folder, 'a'), join(folder, 'b'), whole);
      await files.move(join(folder, 'a'), join(folder, 'c'), { overwrite: false });
      const stateOf = async (at: Path): Promise<readonly [Entry, number]> => {
        const found = await fileAt(at);
        return [found, (await state.properties.of([found.id])).get(found.id)?.length ?? 0];
      };
      expect(await stateOf(path(`${folder}/b/f`))).toMatchObject([{ modifiedMs }, 1]);
      expect(await stateOf(path(`${folder}/c/f`))).toMatchObject([{ modifiedMs }, 1]);
    });
  });
}
