import { beforeAll, describe, expect, test } from 'vitest';
import type { FileEntry, Files } from '../../../src/drive/files.ts';
import { join, ROOT } from '../../../src/util/path.ts';
import { faultOf } from '../../support/fault-of.ts';
import { REFUSED_NAME } from '../../support/odd-names.ts';
import { path } from '../../support/paths.ts';
import { ABSENT, ANY, body, type FilesUnderTest } from './files-under-test.ts';

/** Tests writing, folders and placeholders. */
export function writingContract(drive: FilesUnderTest): void {
  let files: Files;
  beforeAll(() => {
    files = drive.files;
  });
  const { newFolder, put, fileAt, textAt, mark, isMarked, namesIn } = drive;

  describe('writing', () => {
    test('a write creates a file or replaces it, and properties stay', async () => {
      const at = join(await newFolder(), 'f');
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

    test('a conditional write is refused as changed unless its condition holds', async () => {
      const at = join(await newFolder(), 'f');
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

    test('a body that fails or has another length than announced is refused, and the old content stays', async () => {
      const at = join(await newFolder(), 'f');
      await put(at, 'old');
      const write = (bytes: AsyncIterable<Uint8Array>, sizeBytes?: number) =>
        files.write(at, bytes, { mode: ANY, ...(sizeBytes !== undefined && { sizeBytes }) });
      expect(await faultOf(write(body('short'), 6))).toBe('incomplete');
      expect(await faultOf(write(body('too long'), 3))).toBe('incomplete');
      expect(await faultOf(write(body(), 3))).toBe('incomplete');
      const lost = new Error('connection lost');
      await expect(write(failing('half', lost))).rejects.toBe(lost);
      expect(await textAt(at)).toBe('old');
      const fresh = join(await newFolder(), 'g');
      expect(await faultOf(files.write(fresh, body('x'), { mode: ANY, sizeBytes: 0 }))).toBe('incomplete');
      expect(await faultOf(files.write(fresh, body(), { mode: ANY, sizeBytes: 1 }))).toBe('incomplete');
      await expect(files.write(fresh, failing('half', lost), { mode: ANY })).rejects.toBe(lost);
      expect(await files.stat(fresh)).toBeUndefined();
    });

    test('a write onto a folder, below a file, into a missing folder or with a bad name is refused', async () => {
      const folder = await newFolder();
      await put(join(folder, 'f'), 'x');
      expect(await faultOf(put(folder, 'x'))).toBe('is-a-folder');
      expect(await faultOf(put(ROOT, 'x'))).toBe('is-a-folder');
      expect(await faultOf(put(path(`${folder}/none/f`), 'x'))).toBe('parent-missing');
      expect(await faultOf(put(path(`${folder}/f/g`), 'x'))).toBe('parent-missing');
      expect(await faultOf(put(join(folder, REFUSED_NAME), 'x'))).toBe('bad-name');
      expect(await files.stat(join(folder, 'none'))).toBeUndefined();
    });

    test('a file has the modification time of its write, or the one that is set later', async () => {
      const at = join(await newFolder(), 'f');
      const [january, june, july] = [Date.UTC(2020, 0, 1), Date.UTC(2021, 5, 1), Date.UTC(2022, 6, 1)];
      const write = (text: string, modifiedMs: number) =>
        files.write(at, body(text), { mode: ANY, modifiedMs });
      expect((await write('x', january)).entry).toMatchObject({ modifiedMs: january });
      // The service ignores a new time for content that it already has.
      expect((await write('x', june)).entry).toMatchObject({ modifiedMs: june });
      expect(await fileAt(at)).toMatchObject({ modifiedMs: june });
      expect(await files.setModified(at, july)).toMatchObject({ modifiedMs: july });
      expect((await files.list(path(at.slice(0, at.lastIndexOf('/'))))).children).toMatchObject([
        { modifiedMs: july },
      ]);
      expect((await write('y', january)).entry).toMatchObject({ modifiedMs: january });
      expect(await faultOf(files.setModified(join(await newFolder(), 'none'), july))).toBe('not-found');
    });

    test('a folder is created once, and not over a file or in a missing folder', async () => {
      const folder = await newFolder();
      expect(await files.createFolder(join(folder, 'New'))).toMatchObject({ kind: 'folder', name: 'New' });
      expect(await faultOf(files.createFolder(join(folder, 'nEW')))).toBe('exists');
      await put(join(folder, 'f'), 'x');
      expect(await faultOf(files.createFolder(join(folder, 'f')))).toBe('exists');
      expect(await faultOf(files.createFolder(path(`${folder}/none/x`)))).toBe('parent-missing');
      expect(await namesIn(folder)).toEqual(['New', 'f']);
    });
  });

  describe('empty files', () => {
    test('an empty file is visible at once, and its body replaces it and keeps its properties', async () => {
      const folder = await newFolder();
      const at = join(folder, 'new.doc');
      const made = await files.write(at, body(), { mode: ABSENT, sizeBytes: 0 });
      expect(made).toMatchObject({ created: true, entry: { sizeBytes: 0 } });
      expect(await files.stat(at)).toEqual(made.entry);
      expect(await namesIn(folder)).toEqual(['new.doc']);
      expect(await textAt(at)).toBe('');
      expect(await faultOf(put(at, 'x', ABSENT))).toBe('changed');
      await drive.state.properties.change(made.entry.id, [
        { set: { namespace: 'n', name: 'p', xml: '<p/>' } },
      ]);
      const { rev } = made.entry as FileEntry;
      const written = await put(at, 'body', { if: 'rev', rev });
      expect(written.created).toBe(false);
      expect(await textAt(at)).toBe('body');
      const { id } = written.entry;
      expect((await drive.state.properties.of([id])).get(id)).toHaveLength(1);
    });

    test('a placeholder is kept until it is committed, and not created over an existing file', async () => {
      const folder = await newFolder();
      const at = join(folder, 'locked');
      const holdMs = 3_600_000;
      const made = await files.keepPlaceholder(at, holdMs);
      expect(made).toMatchObject({ created: true, entry: { kind: 'file', sizeBytes: 0 } });
      expect(await files.keepPlaceholder(at, holdMs)).toMatchObject({
        created: false,
        entry: { id: made.entry.id },
      });
      await files.commitPlaceholder(at);
      expect(await fileAt(at)).toMatchObject({ sizeBytes: 0 });
      await files.commitPlaceholder(at);
      const { entry } = await put(join(folder, 'f'), 'x');
      expect(await files.keepPlaceholder(join(folder, 'f'), holdMs)).toEqual({ entry, created: false });
      expect(await faultOf(files.keepPlaceholder(path(`${folder}/none/f`), holdMs))).toBe('parent-missing');
    });

    test('placeholders can be removed, moved and copied', async () => {
      const folder = await newFolder();
      for (const name of ['a', 'b', 'c']) await files.write(join(folder, name), body(), { mode: ANY });
      await files.remove(join(folder, 'a'), { recoverable: false });
      await files.move(join(folder, 'b'), join(folder, 'b2'), { overwrite: false });
      await files.copy(join(folder, 'c'), join(folder, 'c2'), { overwrite: false, shallow: false });
      expect(await namesIn(folder)).toEqual(['b2', 'c', 'c2']);
      const other = join(await newFolder(), 'moved');
      await files.move(folder, other, { overwrite: false });
      expect(await namesIn(other)).toEqual(['b2', 'c', 'c2']);
    });
  });
}

async function* failing(text: string, error: Error): AsyncIterable<Uint8Array> {
  yield Buffer.from(text);
  throw error;
}
