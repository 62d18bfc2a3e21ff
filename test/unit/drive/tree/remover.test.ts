import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDrive } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  for (const name of ['/a', '/b', '/c', '/f/x']) remote.putFile(at(name), name);
});

afterEach(() => drive.close());

const remove = (path: string, recoverable = false) => drive.files.remove(at(path), { recoverable });
const trash = () => remote.trash.map(({ name }) => name);

describe('Remover', () => {
  test('a removed file is deleted for good where the service allows it, and goes to the trash when recoverable', async () => {
    drive = await MemoryDrive.open(remote);
    await remove('/a');
    await remove('/b', true);
    expect(trash()).toEqual(['b']);
    expect(remote.paths).toEqual(['/c', '/f', '/f/x']);
  });

  test('removed files go to the trash where the service does not delete for good, which is found out with one call', async () => {
    remote.permanentAllowed = false;
    drive = await MemoryDrive.open(remote);
    for (const path of ['/a', '/b', '/f']) await remove(path);
    expect(trash()).toEqual(['a', 'b', 'f']);
    expect(remote.count('remove')).toBe(4);
  });

  test('a removed file goes to the trash when the delete policy is trash', async () => {
    drive = await MemoryDrive.open(remote, { deletePolicy: 'trash' });
    await remove('/a');
    expect(trash()).toEqual(['a']);
  });

  test('a permanent removal is refused with not-entitled where the service does not allow it, and a recoverable one succeeds', async () => {
    remote.permanentAllowed = false;
    drive = await MemoryDrive.open(remote, { deletePolicy: 'permanent' });
    await expect(remove('/a')).rejects.toMatchObject({ fault: 'not-entitled' });
    expect(await drive.files.stat(at('/a'))).toBeDefined();
    await remove('/a', true);
    expect(trash()).toEqual(['a']);
  });

  test('removing a file or folder deletes the properties and times of everything in it', async () => {
    drive = await MemoryDrive.open(remote);
    const { state, files } = drive;
    const ids: string[] = [];
    for (const path of ['/a', '/f', '/f/x']) {
      const { id } = (await files.stat(at(path))) ?? { id: '' };
      ids.push(id);
      await state.properties.change(id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
      await files.setModified(at(path), 1_000);
    }
    await remove('/a');
    await remove('/f');
    expect((await state.properties.of(ids)).size).toBe(0);
    expect((await state.times.of(ids)).size).toBe(0);
  });

  test('a file whose folder the service fails to remove is still listed', async () => {
    drive = await MemoryDrive.open(remote);
    remote.failNext('remove', 'too-many-files');
    await expect(remove('/f')).rejects.toMatchObject({ fault: 'too-many' });
    expect(await drive.names(at('/f'))).toEqual(['x']);
  });

  test('removing a file that was replaced elsewhere a moment ago fails with not-found and keeps the new file', async () => {
    drive = await MemoryDrive.open(remote);
    await drive.files.stat(at('/a'));
    remote.holdFeed();
    remote.delete(at('/a'));
    remote.putFile(at('/a'), 'another');
    await expect(remove('/a')).rejects.toMatchObject({ fault: 'not-found' });
    expect(remote.text(at('/a'))).toBe('another');
    expect(await drive.text(at('/a'))).toBe('another');
  });

  test('a folder with only local files in it is an empty folder at the service and can be removed and made again', async () => {
    drive = await MemoryDrive.open(remote);
    await drive.files.createFolder(at('/new'));
    await drive.write(at('/new/.DS_Store'), 'x');
    expect(remote.paths).toEqual(['/a', '/b', '/c', '/f', '/f/x', '/new']);
    await remove('/new');
    expect(remote.paths).toEqual(['/a', '/b', '/c', '/f', '/f/x']);
    await drive.files.createFolder(at('/new'));
    expect(await drive.names(at('/new'))).toEqual([]);
  });
});
