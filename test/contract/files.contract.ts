import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DriveState } from '../../src/state/state.ts';
import { join, type Path, pathOf, ROOT } from '../../src/util/path.ts';
import type { Entry, FileEntry, Files, WriteMode } from '../../src/vfs/files.ts';
import { faultOf } from '../support/fault-of.ts';

/** A drive that is empty. */
export interface OpenedFiles {
  readonly files: Files;
  readonly state: DriveState;
  close(): Promise<void>;
}

const path = (text: string): Path => pathOf(text.split('/').filter((name) => name !== ''));

const ANY = { if: 'any' } as const;
const ABSENT = { if: 'absent' } as const;

async function* body(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

/** What every `Files` does, whatever is behind it: each promise of `vfs/files.ts`. */
export function filesContract(name: string, open: () => Promise<OpenedFiles>): void {
  describe(`Files: ${name}`, () => {
    let opened: OpenedFiles;
    let files: Files;
    let rooms = 0;

    beforeAll(async () => {
      opened = await open();
      files = opened.files;
    });
    afterAll(() => opened.close());

    /** A new, empty folder for one test. */
    const room = async (): Promise<Path> => {
      rooms += 1;
      return (await files.createFolder(path(`/Room ${rooms}`))).path;
    };
    const put = (at: Path, text: string, mode: WriteMode = ANY) =>
      files.write(at, body(text), { mode, sizeBytes: Buffer.byteLength(text) });
    const fileAt = async (at: Path): Promise<FileEntry> => {
      const entry = await files.stat(at);
      if (entry?.kind !== 'file') throw new Error(`no file at ${at}`);
      return entry;
    };
    const textAt = async (at: Path): Promise<string> => {
      const pieces: Uint8Array[] = [];
      const { signal } = new AbortController();
      for await (const piece of files.read(await fileAt(at), undefined, signal)) pieces.push(piece);
      return Buffer.concat(pieces).toString();
    };
    /** Marks a file; with a journal it gets its final id only when it has landed, and its mark goes with it. */
    const mark = ({ id }: Entry) =>
      opened.state.properties.change(id, [{ set: { namespace: 'n', name: 'mark', xml: '<mark/>' } }]);
    const isMarked = async ({ id }: Entry) => (await opened.state.properties.of([id])).has(id);
    const namesIn = async (at: Path) => (await files.list(at)).children.map((child) => child.name).sort();

    describe('what is there', () => {
      test('the root is a folder', async () => {
        expect(await files.stat(ROOT)).toMatchObject({ kind: 'folder', path: '/', name: '' });
      });

      test('a file, in whatever case it is asked for, shown as it was named', async () => {
        const folder = await room();
        const { entry } = await put(join(folder, 'Übung #1 %41.txt'), 'text');
        expect(entry).toMatchObject({ kind: 'file', name: 'Übung #1 %41.txt', sizeBytes: 4 });
        expect(await files.stat(path(`${folder.toUpperCase()}/u\u0308BUNG #1 %41.TXT`))).toEqual(entry);
        expect((await files.list(path(folder.toUpperCase()))).children).toEqual([entry]);
      });

      test('nothing', async () => {
        const folder = await room();
        await put(join(folder, 'f'), 'x');
        expect(await files.stat(join(folder, 'none'))).toBeUndefined();
        expect(await files.stat(path(`${folder}/f/below`))).toBeUndefined();
        expect(await faultOf(files.list(join(folder, 'none')))).toBe('not-found');
        expect(await faultOf(files.list(join(folder, 'f')))).toBe('not-a-folder');
      });

      test('a tree, parents first', async () => {
        const folder = await room();
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

    describe('writing', () => {
      test('makes and replaces', async () => {
        const at = join(await room(), 'f');
        const first = await put(at, 'one');
        expect(first).toMatchObject({ created: true, entry: { path: at, sizeBytes: 3 } });
        expect(await textAt(at)).toBe('one');
        await mark(first.entry);
        const second = await put(at, 'three');
        expect(second).toMatchObject({ created: false, entry: { sizeBytes: 5 } });
        expect(await isMarked(second.entry)).toBe(true);
        expect(await fileAt(at)).toEqual(second.entry);
        expect(await textAt(at)).toBe('three');
      });

      test('under a condition', async () => {
        const at = join(await room(), 'f');
        const { entry } = await put(at, 'one', ABSENT);
        expect(await faultOf(put(at, 'two', ABSENT))).toBe('changed');
        const { rev } = entry as FileEntry;
        expect(await faultOf(put(at, 'two', { if: 'rev', rev: '0123456789abcdef' }))).toBe('changed');
        expect(await textAt(at)).toBe('one');
        await put(at, 'two', { if: 'rev', rev });
        expect(await faultOf(put(at, 'three', { if: 'rev', rev }))).toBe('changed');
        expect(await textAt(at)).toBe('two');
        await files.remove(at, { recoverable: true });
        expect(await faultOf(put(at, 'four', { if: 'rev', rev }))).toBe('changed');
        expect(await files.stat(at)).toBeUndefined();
      });

      test('nothing of a body that fails or is not what was announced', async () => {
        const at = join(await room(), 'f');
        await put(at, 'old');
        const write = (bytes: AsyncIterable<Uint8Array>, sizeBytes?: number) =>
          files.write(at, bytes, { mode: ANY, ...(sizeBytes !== undefined && { sizeBytes }) });
        expect(await faultOf(write(body('short'), 6))).toBe('incomplete');
        expect(await faultOf(write(body('too long'), 3))).toBe('incomplete');
        expect(await faultOf(write(body(), 3))).toBe('incomplete');
        const lost = new Error('connection lost');
        await expect(write(failing('half', lost))).rejects.toBe(lost);
        expect(await textAt(at)).toBe('old');
        const fresh = join(await room(), 'g');
        expect(await faultOf(files.write(fresh, body('x'), { mode: ANY, sizeBytes: 0 }))).toBe('incomplete');
        expect(await faultOf(files.write(fresh, body(), { mode: ANY, sizeBytes: 1 }))).toBe('incomplete');
        await expect(files.write(fresh, failing('half', lost), { mode: ANY })).rejects.toBe(lost);
        expect(await files.stat(fresh)).toBeUndefined();
      });

      test('only where a file can be', async () => {
        const folder = await room();
        await put(join(folder, 'f'), 'x');
        expect(await faultOf(put(folder, 'x'))).toBe('is-a-folder');
        expect(await faultOf(put(ROOT, 'x'))).toBe('is-a-folder');
        expect(await faultOf(put(path(`${folder}/none/f`), 'x'))).toBe('parent-missing');
        expect(await faultOf(put(path(`${folder}/f/g`), 'x'))).toBe('parent-missing');
        expect(await faultOf(put(join(folder, 'back\\slash'), 'x'))).toBe('bad-name');
        expect(await files.stat(join(folder, 'none'))).toBeUndefined();
      });

      test('with the time that the sender gives, and sets later', async () => {
        const at = join(await room(), 'f');
        const [january, june, july] = [Date.UTC(2020, 0, 1), Date.UTC(2021, 5, 1), Date.UTC(2022, 6, 1)];
        const write = (text: string, modifiedMs: number) =>
          files.write(at, body(text), { mode: ANY, modifiedMs });
        expect((await write('x', january)).entry).toMatchObject({ modifiedMs: january });
        // The service ignores the time of content that it has already.
        expect((await write('x', june)).entry).toMatchObject({ modifiedMs: june });
        expect(await fileAt(at)).toMatchObject({ modifiedMs: june });
        expect(await files.setModified(at, july)).toMatchObject({ modifiedMs: july });
        expect((await files.list(path(at.slice(0, at.lastIndexOf('/'))))).children).toMatchObject([
          { modifiedMs: july },
        ]);
        expect((await write('y', january)).entry).toMatchObject({ modifiedMs: january });
        expect(await faultOf(files.setModified(join(await room(), 'none'), july))).toBe('not-found');
      });

      test('a folder, once', async () => {
        const folder = await room();
        expect(await files.createFolder(join(folder, 'New'))).toMatchObject({ kind: 'folder', name: 'New' });
        expect(await faultOf(files.createFolder(join(folder, 'nEW')))).toBe('exists');
        await put(join(folder, 'f'), 'x');
        expect(await faultOf(files.createFolder(join(folder, 'f')))).toBe('exists');
        expect(await faultOf(files.createFolder(path(`${folder}/none/x`)))).toBe('parent-missing');
        expect(await namesIn(folder)).toEqual(['New', 'f']);
      });
    });

    describe('empty files', () => {
      test('are there at once, and become what is written next', async () => {
        const folder = await room();
        const at = join(folder, 'new.doc');
        const made = await files.write(at, body(), { mode: ABSENT, sizeBytes: 0 });
        expect(made).toMatchObject({ created: true, entry: { sizeBytes: 0 } });
        expect(await files.stat(at)).toEqual(made.entry);
        expect(await namesIn(folder)).toEqual(['new.doc']);
        expect(await textAt(at)).toBe('');
        expect(await faultOf(put(at, 'x', ABSENT))).toBe('changed');
        await opened.state.properties.change(made.entry.id, [
          { set: { namespace: 'n', name: 'p', xml: '<p/>' } },
        ]);
        const { rev } = made.entry as FileEntry;
        const written = await put(at, 'body', { if: 'rev', rev });
        expect(written.created).toBe(false);
        expect(await textAt(at)).toBe('body');
        const { id } = written.entry;
        expect((await opened.state.properties.of([id])).get(id)).toHaveLength(1);
      });

      test('are held as long as is asked for, and committed when they are settled', async () => {
        const folder = await room();
        const at = join(folder, 'locked');
        const untilMs = Date.UTC(2099, 0, 1);
        const made = await files.hold(at, untilMs);
        expect(made).toMatchObject({ created: true, entry: { kind: 'file', sizeBytes: 0 } });
        expect(await files.hold(at, untilMs)).toMatchObject({ created: false, entry: { id: made.entry.id } });
        await files.settle(at);
        expect(await fileAt(at)).toMatchObject({ sizeBytes: 0 });
        await files.settle(at);
        const { entry } = await put(join(folder, 'f'), 'x');
        expect(await files.hold(join(folder, 'f'), untilMs)).toEqual({ entry, created: false });
        expect(await faultOf(files.hold(path(`${folder}/none/f`), untilMs))).toBe('parent-missing');
      });

      test('can be removed, moved and copied like others', async () => {
        const folder = await room();
        for (const name of ['a', 'b', 'c']) await files.write(join(folder, name), body(), { mode: ANY });
        await files.remove(join(folder, 'a'), { recoverable: false });
        await files.move(join(folder, 'b'), join(folder, 'b2'), { overwrite: false });
        await files.copy(join(folder, 'c'), join(folder, 'c2'), { overwrite: false, shallow: false });
        expect(await namesIn(folder)).toEqual(['b2', 'c', 'c2']);
        const other = join(await room(), 'moved');
        await files.move(folder, other, { overwrite: false });
        expect(await namesIn(other)).toEqual(['b2', 'c', 'c2']);
      });
    });

    describe('removing', () => {
      test.each([true, false])(
        'a file only as long as it is what was meant (recoverable: %s)',
        async (recoverable) => {
          const at = join(await room(), 'f');
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
        'files, and folders with all in them (recoverable: %s)',
        async (recoverable) => {
          const folder = await room();
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

      test('a file', async () => {
        const folder = await room();
        await mark((await put(join(folder, 'a'), 'text')).entry);
        const moved = await files.move(join(folder, 'a'), join(folder, 'B'), { overwrite: false });
        expect(moved).toMatchObject({ created: true, entry: { name: 'B' } });
        expect(await isMarked(moved.entry)).toBe(true);
        const copied = await files.copy(join(folder, 'b'), join(folder, 'c'), whole);
        expect(copied.entry.id).not.toBe(moved.entry.id);
        expect(await namesIn(folder)).toEqual(['B', 'c']);
        expect([await textAt(join(folder, 'b')), await textAt(join(folder, 'c'))]).toEqual(['text', 'text']);
      });

      test('a folder with all in it, or without', async () => {
        const folder = await room();
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

      test.each(['move', 'copy'] as const)('%s onto what is there only when asked to', async (what) => {
        const folder = await room();
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
      });

      test('not where it makes no sense', async () => {
        const folder = await room();
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

      test('to another letter case', async () => {
        const folder = await room();
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

      test('takes along what was said of files: properties and times', async () => {
        const folder = await room();
        const { state } = opened;
        const modifiedMs = Date.UTC(2001, 1, 1);
        await files.createFolder(join(folder, 'a'));
        const { entry } = await put(path(`${folder}/a/f`), 'x');
        await state.properties.change(entry.id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
        await files.setModified(path(`${folder}/a/f`), modifiedMs);
        await files.copy(join(folder, 'a'), join(folder, 'b'), whole);
        await files.move(join(folder, 'a'), join(folder, 'c'), { overwrite: false });
        const told = async (at: Path): Promise<readonly [Entry, number]> => {
          const found = await fileAt(at);
          return [found, (await state.properties.of([found.id])).get(found.id)?.length ?? 0];
        };
        expect(await told(path(`${folder}/b/f`))).toMatchObject([{ modifiedMs }, 1]);
        expect(await told(path(`${folder}/c/f`))).toMatchObject([{ modifiedMs }, 1]);
      });
    });

    describe('shared links', () => {
      test('are made, replaced, found and revoked', async () => {
        const at = join(await room(), 'f');
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
        expect(await faultOf(files.shareLink(join(await room(), 'none'), {}))).toBe('not-found');
        expect(await faultOf(files.shareLink(at, { visibility: 'password' }))).toBe('unsupported');
      });
    });

    test('space is told', async () => {
      const before = await files.freeSpace();
      await put(join(await room(), 'f'), 'x'.repeat(100_000));
      const after = await files.freeSpace();
      expect((after?.usedBytes ?? 0) - (before?.usedBytes ?? 0)).toBe(100_000);
      expect((before?.availableBytes ?? 0) - (after?.availableBytes ?? 0)).toBe(100_000);
    });
  });
}

async function* failing(text: string, error: Error): AsyncIterable<Uint8Array> {
  yield Buffer.from(text);
  throw error;
}
