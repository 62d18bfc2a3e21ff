import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { WriteMode } from '../../../src/drive/files.ts';
import { isLitter } from '../../../src/drive/names.ts';
import { LOCAL_FILE_BYTES_MAX } from '../../../src/state/sqlite/local-files.ts';
import { type Path, ROOT } from '../../../src/util/path.ts';
import { bodyOf, MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  remote.putFile(at('/Docs/a.txt'), 'a');
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

const remove = (path: Path) => drive.files.remove(path, { recoverable: false });

test.each([
  ['.DS_Store', true],
  ['.ds_store', true],
  ['._a.txt', true],
  ['._', false],
  ['Thumbs.db', true],
  ['THUMBS.DB', true],
  ['Thumbs.dbx', false],
  ['desktop.ini', true],
  ['.Trashes', true],
  ['.Spotlight-V100', true],
  ['~$Report.docx', true],
  ['~$', false],
  ['~tilde.txt', false],
  ['.~lock.Report.odt#', true],
  ['.~lock.Report.odt', false],
  ['Icon\r', true],
  ['Icon', false],
  ['.metadata_never_index', true],
  ['.gitignore', false],
  ['.Trash-1000', false],
])('isLitter(%j) is %s', (name, expected) => {
  expect(isLitter(name)).toBe(expected);
});

describe('local files', () => {
  test('a stat of a missing local file makes no call to the service, in any folder', async () => {
    for (const name of [
      '/._x',
      '/.DS_Store',
      '/unknown/folder/.DS_Store',
      '/Docs/._a.txt',
      '/.Trashes/501/x',
    ])
      expect(await drive.files.stat(at(name))).toBeUndefined();
    expect(remote.questions).toBe(0);
  });

  test('a local file is stored, listed and read like any other file, and never sent to the service', async () => {
    const { entry, created } = await drive.write(at('/docs/._A.txt'), 'fork');
    expect(created).toBe(true);
    expect(entry).toMatchObject({ kind: 'file', path: '/Docs/._A.txt', sizeBytes: 4 });
    expect(await drive.files.stat(at('/DOCS/._a.TXT'))).toEqual(entry);
    expect(await drive.names(at('/Docs'))).toEqual(['._A.txt', 'a.txt']);
    expect(await drive.text(at('/Docs/._a.txt'))).toBe('fork');
    const range = { start: 1, end: 3 };
    const pieces: Uint8Array[] = [];
    if (entry.kind === 'file')
      for await (const piece of drive.files.read(entry, range, new AbortController().signal))
        pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toBe('or');
    expect(remote.paths).toEqual(['/Docs', '/Docs/a.txt']);
  });

  test('a local file obeys write conditions, announced sizes and revisions like any other file', async () => {
    const write = (text: string, mode: Parameters<typeof drive.files.write>[2]['mode'], sizeBytes?: number) =>
      drive.files.write(at('/._a'), bodyOf(text), { mode, ...(sizeBytes !== undefined && { sizeBytes }) });
    await expect(write('x', { if: 'rev', rev: 'none' })).rejects.toMatchObject({ fault: 'changed' });
    const { entry } = await write('one', { if: 'absent' });
    await expect(write('two', { if: 'absent' })).rejects.toMatchObject({ fault: 'changed' });
    await expect(write('cut', { if: 'any' }, 10)).rejects.toMatchObject({ fault: 'incomplete' });
    expect(await drive.text(at('/._a'))).toBe('one');
    const rev = entry.kind === 'file' ? entry.rev : '';
    const second = await write('two', { if: 'rev', rev });
    expect(second).toMatchObject({ created: false, entry: { id: entry.id } });
    await expect(write('three', { if: 'rev', rev })).rejects.toMatchObject({ fault: 'changed' });
    if (entry.kind !== 'file') throw new Error('not a file');
    const old = drive.files.read(entry, undefined, new AbortController().signal);
    // Another revision is at the path, so a retry succeeds.
    await expect(old[Symbol.asyncIterator]().next()).rejects.toMatchObject({ fault: 'busy' });
    await remove(at('/._a'));
    const gone = drive.files.read(entry, undefined, new AbortController().signal);
    await expect(gone[Symbol.asyncIterator]().next()).rejects.toMatchObject({ fault: 'not-found' });
  });

  test('a read of a local file that is replaced at this moment is busy, and does not return the new bytes', async () => {
    const old = await drive.put(at('/._a'), 'old');
    const { localFiles: store } = drive.state;
    let isReplaced = false;
    const thenReplaced = async <T>(answer: Promise<T>): Promise<T> => {
      const result = await answer;
      if (isReplaced) return result;
      isReplaced = true;
      await drive.write(at('/._a'), 'new');
      return result;
    };
    const [get, read] = [store.get.bind(store), store.read.bind(store)];
    vi.spyOn(store, 'get').mockImplementation((path) => thenReplaced(get(path)));
    vi.spyOn(store, 'read').mockImplementation((path) => thenReplaced(read(path)));
    const reading = drive.files.read(old, undefined, new AbortController().signal);
    await expect(reading[Symbol.asyncIterator]().next()).rejects.toMatchObject({ fault: 'busy' });
    expect(await drive.text(at('/._a'))).toBe('new');
  });

  test('of three concurrent creations of a local file, one succeeds', async () => {
    const write = () => drive.files.write(at('/._a'), bodyOf('x'), { mode: { if: 'absent' } });
    const outcomes = await Promise.allSettled([write(), write(), write()]);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('a local file in a missing folder or below a file is refused with parent-missing', async () => {
    await expect(drive.write(at('/none/._a'), 'x')).rejects.toMatchObject({ fault: 'parent-missing' });
    await expect(drive.write(at('/Docs/a.txt/._a'), 'x')).rejects.toMatchObject({ fault: 'parent-missing' });
  });

  test('a local file over the size limit is refused with too-large and leaves nothing behind', async () => {
    async function* large() {
      for (let sent = 0; sent <= LOCAL_FILE_BYTES_MAX; sent += 2 ** 20) yield new Uint8Array(2 ** 20);
    }
    const writing = drive.files.write(at('/._large'), large(), { mode: { if: 'any' } });
    await expect(writing).rejects.toMatchObject({ fault: 'too-large' });
    expect(await drive.files.stat(at('/._large'))).toBeUndefined();
  });

  test('a folder with a local name can be created, listed, walked, copied and removed without a call to the service', async () => {
    await drive.files.createFolder(at('/.Trashes'));
    await drive.files.createFolder(at('/.Trashes/501'));
    await drive.write(at('/.Trashes/501/x'), 'x');
    expect(await drive.names(ROOT)).toEqual(['.Trashes', 'Docs']);
    expect(await drive.names(at('/.Trashes'))).toEqual(['501']);
    expect(await drive.files.stat(at('/.Trashes/501'))).toMatchObject({ kind: 'folder' });
    await expect(drive.files.createFolder(at('/.Trashes/501'))).rejects.toMatchObject({ fault: 'exists' });
    await expect(drive.write(at('/.Trashes/501'), 'x')).rejects.toMatchObject({ fault: 'is-a-folder' });
    await expect(drive.files.list(at('/.Trashes/501/x'))).rejects.toMatchObject({ fault: 'not-a-folder' });
    const seen: string[] = [];
    for await (const { folder } of drive.files.walk(at('/.Trashes'))) seen.push(folder.path);
    expect(seen).toEqual(['/.Trashes', '/.Trashes/501']);
    await drive.files.copy(at('/.Trashes'), at('/.TemporaryItems'), { overwrite: false, shallow: false });
    expect(await drive.names(at('/.TemporaryItems/501'))).toEqual(['x']);
    await remove(at('/.Trashes'));
    expect(await drive.files.stat(at('/.Trashes/501/x'))).toBeUndefined();
    expect(remote.paths).toEqual(['/Docs', '/Docs/a.txt']);
  });

  test('a shallow copy of a local folder has its properties and nothing that it contains, and replaces what is there', async () => {
    for (const folder of ['/.Trashes', '/.Trashes/a', '/.Trashes/b'])
      await drive.files.createFolder(at(folder));
    for (const file of ['/.Trashes/a/f', '/.Trashes/b/old']) await drive.write(at(file), 'x');
    const { properties } = drive.state;
    const tag = { namespace: 'urn:x', name: 'tag' };
    const source = await drive.files.stat(at('/.Trashes/a'));
    await properties.change(source?.id ?? '', [{ set: { ...tag, xml: '<tag xmlns="urn:x"/>' } }]);
    const copy = (to: string) =>
      drive.files.copy(at('/.Trashes/a'), at(to), { overwrite: true, shallow: true });
    for (const [to, created] of [
      ['/.Trashes/c', true],
      ['/.Trashes/b', false],
    ] as const) {
      const { entry, ...rest } = await copy(to);
      expect([entry.kind, rest.created, await drive.names(at(to))]).toEqual(['folder', created, []]);
      expect((await properties.of([entry.id])).get(entry.id)).toHaveLength(1);
    }
    expect(await drive.names(at('/.Trashes/a'))).toEqual(['f']);
    await drive.files.copy(at('/.Trashes/a/f'), at('/.Trashes/g'), { overwrite: false, shallow: true });
    expect(await drive.text(at('/.Trashes/g'))).toBe('x');
  });

  test('a local name that exists at the service is not shown', async () => {
    remote.putFile(at('/Docs/~$a.docx'), 'x');
    await turn(10);
    expect(await drive.names(at('/Docs'))).toEqual(['a.txt']);
    expect(await drive.files.stat(at('/Docs/~$a.docx'))).toBeUndefined();
  });

  test('a local file is removed together with the file or folder it belongs to', async () => {
    await drive.write(at('/Docs/._a.txt'), 'fork');
    await remove(at('/Docs/a.txt'));
    expect(await drive.names(at('/Docs'))).toEqual([]);
    await drive.write(at('/Docs/.DS_Store'), 'view');
    await remove(at('/Docs'));
    await drive.files.createFolder(at('/Docs'));
    expect(await drive.names(at('/Docs'))).toEqual([]);
  });

  test('a local file is moved and copied together with the file or folder it belongs to', async () => {
    await drive.write(at('/Docs/._a.txt'), 'fork');
    await drive.files.move(at('/Docs/a.txt'), at('/b.txt'), { overwrite: false });
    expect(await drive.text(at('/._b.txt'))).toBe('fork');
    expect(await drive.files.stat(at('/Docs/._a.txt'))).toBeUndefined();
    await drive.write(at('/Docs/.DS_Store'), 'view');
    await drive.files.copy(at('/Docs'), at('/Copy'), { overwrite: false, shallow: false });
    await drive.files.move(at('/Docs'), at('/Moved'), { overwrite: false });
    expect(await drive.text(at('/Copy/.DS_Store'))).toBe('view');
    expect(await drive.text(at('/Moved/.DS_Store'))).toBe('view');
    await drive.files.createFolder(at('/Docs'));
    expect(await drive.names(at('/Docs'))).toEqual([]);
  });

  test('a local file renamed to an ordinary name is sent to the service, and an ordinary file renamed to a local name leaves it', async () => {
    await drive.write(at('/Docs/~$b.docx'), 'real content');
    const overwrite = { overwrite: false };
    expect(await drive.files.move(at('/Docs/~$b.docx'), at('/Docs/b.docx'), overwrite)).toMatchObject({
      created: true,
    });
    expect(remote.text(at('/Docs/b.docx'))).toBe('real content');
    expect(await drive.names(at('/Docs'))).toEqual(['a.txt', 'b.docx']);
    await expect(drive.files.move(at('/Docs/b.docx'), at('/Docs/a.txt'), overwrite)).rejects.toMatchObject({
      fault: 'exists',
    });
    await drive.files.move(at('/Docs/b.docx'), at('/Docs/~$c.docx'), overwrite);
    expect(await drive.text(at('/Docs/~$c.docx'))).toBe('real content');
    expect(remote.paths).toEqual(['/Docs', '/Docs/a.txt']);
    expect(remote.trash).toHaveLength(1);
    await drive.files.copy(at('/Docs/~$c.docx'), at('/Docs/a.txt'), { overwrite: true, shallow: false });
    expect(remote.text(at('/Docs/a.txt'))).toBe('real content');
    await expect(drive.files.move(at('/Docs'), at('/._Docs'), overwrite)).rejects.toMatchObject({
      fault: 'forbidden',
    });
    await expect(drive.files.move(at('/._x'), at('/x'), overwrite)).rejects.toMatchObject({
      fault: 'not-found',
    });
  });

  test('a local file has a settable modification time and cannot be shared', async () => {
    await drive.write(at('/._a'), 'x');
    const modifiedMs = Date.UTC(2020, 0, 1);
    await drive.files.setModified(at('/._a'), modifiedMs);
    expect(await drive.files.stat(at('/._a'))).toMatchObject({ modifiedMs });
    expect(await drive.files.sharedLink(at('/._a'))).toBeUndefined();
    await expect(drive.files.shareLink(at('/._a'), {})).rejects.toMatchObject({ fault: 'unsupported' });
  });

  describe('in a drive that drops large ones', () => {
    beforeEach(async () => {
      await drive.close();
      drive = await MemoryDrive.open(remote, { localFilesPolicy: 'drop' });
    });

    const chunks = Array.from({ length: 17 }, () => new Uint8Array(2 ** 20));
    const writeLarge = (mode: WriteMode, sizeBytes = 17 * 2 ** 20) =>
      drive.files.write(at('/Docs/._a.txt'), Readable.from(chunks), { mode, sizeBytes });

    test('a large local file is acknowledged, replaces a small one, and is not there', async () => {
      await drive.write(at('/Docs/._a.txt'), 'small');
      expect(await writeLarge({ if: 'any' })).toMatchObject({
        created: false,
        entry: { kind: 'file', path: '/Docs/._a.txt', sizeBytes: 17 * 2 ** 20 },
      });
      expect(await drive.names(at('/Docs'))).toEqual(['a.txt']);
      expect(await writeLarge({ if: 'any' })).toMatchObject({ created: true });
      expect(remote.paths).toEqual(['/Docs', '/Docs/a.txt']);
    });

    test('a small local file is kept', async () => {
      await drive.write(at('/Docs/._a.txt'), 'small');
      expect(await drive.text(at('/Docs/._a.txt'))).toBe('small');
    });

    test('a large local file whose condition fails or whose end is missing is refused, and the small one is kept', async () => {
      await drive.write(at('/Docs/._a.txt'), 'small');
      await expect(writeLarge({ if: 'absent' })).rejects.toMatchObject({ fault: 'changed' });
      await expect(writeLarge({ if: 'any' }, 18 * 2 ** 20)).rejects.toMatchObject({ fault: 'incomplete' });
      expect(await drive.text(at('/Docs/._a.txt'))).toBe('small');
    });

    test('an ordinary file that is too large for a local one cannot be moved to the name of one, and stays where it is', async () => {
      await drive.files.write(at('/large'), Readable.from(chunks), { mode: { if: 'any' } });
      const moving = drive.files.move(at('/large'), at('/._large'), { overwrite: false });
      await expect(moving).rejects.toMatchObject({ fault: 'too-large' });
      expect(await drive.files.stat(at('/large'))).toMatchObject({ sizeBytes: 17 * 2 ** 20 });
    });
  });

  test('a drive without local files sends `._` files to the service and hides none of them', async () => {
    await drive.close();
    drive = await MemoryDrive.open(remote, { localFilesPolicy: 'send' });
    await drive.write(at('/Docs/._a.txt'), 'fork');
    expect(remote.text(at('/Docs/._a.txt'))).toBe('fork');
    await drive.write(at('/.DS_Store'), 'x');
    expect(remote.text(at('/.DS_Store'))).toBe('x');
    expect(await drive.names(at('/Docs'))).toEqual(['._a.txt', 'a.txt']);
  });

  test('a local file survives a kill', async () => {
    await drive.write(at('/._a'), 'fork');
    drive.kill();
    await drive.start();
    expect(await drive.text(at('/._a'))).toBe('fork');
  });
});
