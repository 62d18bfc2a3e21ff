import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import { joined } from '../../../support/byte-source.ts';
import { faultOf } from '../../../support/fault-of.ts';
import { MemoryDrive } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open();
  ({ remote } = drive);
});

afterEach(() => drive.close());

const history = () => drive.files.history;
const remove = (path: string) => drive.files.remove(at(path), { recoverable: true });
const trashed = async (folder: string) =>
  (await history().trash(at(folder))).items.map(({ path, file }) => (file ? path : `${path}/`));

/** Lets so much time pass at the service that a later deletion is another one. */
function longAfter(): void {
  for (let second = 0; second < 70; second++) remote.putFile(at('/clock'), String(second));
}

describe('versions', () => {
  test('versions are listed newest first, with the current one', async () => {
    const first = await drive.put(at('/a'), 'first');
    const second = await drive.put(at('/a'), 'second');
    const { files, currentRev } = await history().versions(at('/a'));
    expect(files.map(({ rev }) => rev)).toEqual([second.rev, first.rev]);
    expect(currentRev).toBe(second.rev);
  });

  test.each([
    ['that was renamed has the versions of its old name', '/draft'],
    ['that was moved over another one has the versions of that one too', '/final'],
  ])('a file %s, which can be restored', async (_what, place) => {
    const version = await drive.put(at(place), 'an old version');
    await drive.put(at('/draft'), 'draft');
    await drive.files.move(at('/draft'), at('/final'), { overwrite: true });
    const { files, currentRev } = await history().versions(at('/final'));
    expect(files.map(({ rev }) => rev)).toContain(version.rev);
    expect(files.find(({ rev }) => rev === currentRev)?.sizeBytes).toBe(5);
    await history().restore(at('/final'), version.rev);
    expect(await drive.text(at('/final'))).toBe('an old version');
    expect(await drive.names(ROOT)).toEqual(['final']);
  });

  test('the bytes of an old version are read, also of an empty one', async () => {
    const empty = remote.putFile(at('/a'), '');
    const first = await drive.put(at('/a'), 'first');
    await drive.put(at('/a'), 'second');
    for (const { rev, range, text } of [
      { rev: first.rev, range: undefined, text: 'first' },
      { rev: first.rev, range: { start: 1, end: 3 }, text: 'ir' },
      { rev: empty.rev, range: undefined, text: '' },
    ]) {
      const version = await history().version(at('/a'), rev);
      const bytes = await joined(history().read(version, range, new AbortController().signal));
      expect(bytes.toString()).toBe(text);
    }
  });

  test('versions of what has none are refused', async () => {
    await drive.files.createFolder(at('/folder'));
    await drive.put(at('/.DS_Store'), 'local');
    expect(await faultOf(history().versions(at('/folder')))).toBe('is-a-folder');
    expect(await faultOf(history().versions(ROOT))).toBe('is-a-folder');
    expect(await faultOf(history().versions(at('/.DS_Store')))).toBe('unsupported');
    expect(await faultOf(history().versions(at('/never')))).toBe('not-found');
    expect(await faultOf(history().version(at('/folder'), 'rev1'))).toBe('is-a-folder');
  });

  test('a restored version is what the drive shows at once, and its bytes count', async () => {
    const first = await drive.put(at('/a'), 'a longer first text');
    await drive.put(at('/a'), 'second');
    remote.holdFeed();
    const usedBytes = (await drive.files.freeSpace())?.usedBytes ?? 0;
    await history().restore(at('/a'), first.rev);
    expect(await drive.text(at('/a'))).toBe('a longer first text');
    expect((await drive.files.freeSpace())?.usedBytes).toBe(usedBytes + 13);
  });

  test('a version of another file is not restored', async () => {
    await drive.put(at('/a'), 'a');
    const other = await drive.put(at('/b'), 'b');
    expect(await faultOf(history().restore(at('/a'), other.rev))).toBe('not-found');
    expect(await drive.text(at('/a'))).toBe('a');
  });

  test('a failed restore leaves the drive as it is', async () => {
    const first = await drive.put(at('/a'), 'first');
    await drive.put(at('/a'), 'second');
    remote.failNext('restore', 'offline');
    expect(await faultOf(history().restore(at('/a'), first.rev))).toBe('offline');
    expect(await drive.text(at('/a'))).toBe('second');
  });
});

describe('the trash', () => {
  test('the trash has deleted files and folders of one folder, and nothing that is there again', async () => {
    await drive.files.createFolder(at('/f'));
    await drive.files.createFolder(at('/f/in'));
    for (const path of ['/f/a', '/f/b', '/f/in/deep']) await drive.put(at(path), path);
    for (const path of ['/f/a', '/f/b', '/f/in']) await remove(path);
    await drive.put(at('/f/b'), 'again');
    expect(await trashed('/f')).toEqual(['/f/a', '/f/in/']);
    expect(await trashed('/')).toEqual([]);
  });

  test('a file or folder that was moved elsewhere is not in the trash of its old place', async () => {
    await drive.files.createFolder(at('/f'));
    await drive.put(at('/f/a'), 'a');
    await drive.put(at('/b'), 'b');
    await drive.files.move(at('/b'), at('/c'), { overwrite: false });
    await drive.files.move(at('/f'), at('/g'), { overwrite: false });
    expect(await trashed('/')).toEqual([]);
  });

  test('a deleted folder is in the trash also where there is too much to find out whether it was moved', async () => {
    await drive.files.createFolder(at('/f'));
    await drive.put(at('/f/a'), 'a');
    await drive.files.createFolder(at('/other'));
    for (let count = 0; count < 30; count++) remote.putFile(at(`/other/${count}`));
    await remove('/f');
    remote.pageEntries = 2;
    expect(await trashed('/')).toEqual(['/f/']);
    await history().undelete(at('/f'));
    expect(await drive.text(at('/f/a'))).toBe('a');
  });

  test('a file that was deleted for good is not in the trash', async () => {
    await drive.put(at('/a'), 'a');
    await drive.files.remove(at('/a'), { recoverable: false });
    expect(await trashed('/')).toEqual([]);
  });

  test('the hidden name of a file that a move has replaced is not in the trash', async () => {
    await drive.put(at('/old'), 'old');
    await drive.put(at('/new'), 'new');
    await drive.files.move(at('/new'), at('/old'), { overwrite: true });
    expect(remote.trash).toHaveLength(1);
    expect(await trashed('/')).toEqual([]);
  });

  test('the trash of a deleted folder has its files and folders, also deeper ones and those of an empty folder', async () => {
    for (const folder of ['/f', '/f/in', '/f/in/deep', '/f/empty'])
      await drive.files.createFolder(at(folder));
    for (const path of ['/f/a', '/f/in/deep/b']) await drive.put(at(path), path);
    await remove('/f');
    expect(await trashed('/')).toEqual(['/f/']);
    expect(await trashed('/f')).toEqual(['/f/a', '/f/empty/', '/f/in/']);
    expect(await trashed('/f/in')).toEqual(['/f/in/deep/']);
    expect(await trashed('/f/in/deep')).toEqual(['/f/in/deep/b']);
    expect(await trashed('/f/empty')).toEqual([]);
  });

  test('the trash of a missing folder, and of a file, is refused', async () => {
    await drive.put(at('/a'), 'a');
    expect(await faultOf(history().trash(at('/never')))).toBe('not-found');
    expect(await faultOf(history().trash(at('/a')))).toBe('not-a-folder');
  });
});

describe('undelete', () => {
  test('a deleted file comes back, and the drive shows it at once', async () => {
    await drive.put(at('/a'), 'first');
    await drive.put(at('/a'), 'second');
    await remove('/a');
    expect(await drive.names(ROOT)).toEqual([]);
    remote.holdFeed();
    await history().undelete(at('/a'));
    expect(await drive.names(ROOT)).toEqual(['a']);
    expect(await drive.text(at('/a'))).toBe('second');
  });

  test('a deleted file in a deleted folder comes back with the folder', async () => {
    await drive.files.createFolder(at('/f'));
    await drive.put(at('/f/a'), 'a');
    await remove('/f');
    await drive.names(ROOT);
    expect(await drive.files.stat(at('/f'))).toBeUndefined();
    remote.holdFeed();
    await history().undelete(at('/f/a'));
    expect(await drive.names(ROOT)).toEqual(['f']);
    expect(await drive.names(at('/f'))).toEqual(['a']);
  });

  test('a deleted folder comes back with everything that was deleted with it, and no more', async () => {
    for (const folder of ['/f', '/f/in', '/f/empty']) await drive.files.createFolder(at(folder));
    for (const path of ['/f/a', '/f/in/b', '/f/gone']) await drive.put(at(path), path);
    await remove('/f/gone');
    longAfter();
    await remove('/f');
    remote.holdFeed();
    await history().undelete(at('/f'));
    expect(await drive.names(at('/f'))).toEqual(['a', 'empty', 'in']);
    expect(await drive.names(at('/f/in'))).toEqual(['b']);
    expect(await drive.text(at('/f/in/b'))).toBe('/f/in/b');
  });

  test('a deleted empty folder comes back', async () => {
    await drive.files.createFolder(at('/f'));
    await remove('/f');
    await history().undelete(at('/f'));
    expect(await drive.names(ROOT)).toEqual(['f']);
  });

  test('nothing is brought back where something is again, or was never, or was moved away', async () => {
    await drive.put(at('/a'), 'old');
    await remove('/a');
    await drive.put(at('/a'), 'new');
    expect(await faultOf(history().undelete(at('/a')))).toBe('exists');
    expect(await drive.text(at('/a'))).toBe('new');
    expect(await faultOf(history().undelete(at('/never')))).toBe('not-found');
    await drive.files.createFolder(at('/f'));
    await drive.put(at('/f/b'), 'b');
    await drive.files.move(at('/f'), at('/g'), { overwrite: false });
    expect(await faultOf(history().undelete(at('/f')))).toBe('not-found');
  });

  test('a folder of which one file cannot be restored fails, and shows what came back', async () => {
    await drive.files.createFolder(at('/f'));
    await drive.put(at('/f/a'), 'a');
    await drive.put(at('/f/b'), 'b');
    await remove('/f');
    remote.failNext('restore', 'insufficient-space');
    expect(await faultOf(history().undelete(at('/f')))).toBe('no-space');
    expect(await drive.names(at('/f'))).toEqual(['b']);
    expect(await trashed('/f')).toEqual(['/f/a']);
  });
});
