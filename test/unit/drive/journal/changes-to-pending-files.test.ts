import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { faultOf } from '../../../support/fault-of.ts';
import { MemoryDrive } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('changes of pending files', () => {
  test('DELETE of a pending file keeps it from ever being sent', async () => {
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/other'), 'x');
    await gate.reached;
    await drive.put(at('/a'), '');
    await drive.files.remove(at('/a'), { recoverable: false });
    expect(await drive.files.stat(at('/a'))).toBeUndefined();
    expect(await faultOf(drive.files.remove(at('/a'), { recoverable: false }))).toBe('not-found');
    gate.release();
    await drive.untilLanded();
    await drive.clock.advance(60_000);
    expect(remote.paths).toEqual(['/other']);
    expect(remote.count('remove')).toBe(0);
  });

  test('DELETE of a file that is being sent removes it at the service too', async () => {
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'one');
    await gate.reached;
    await drive.put(at('/a'), 'two');
    const removed = drive.files.remove(at('/a'), { recoverable: false });
    gate.release();
    await removed;
    expect(remote.paths).toEqual([]);
    expect(drive.files.depth().files).toBe(0);
  });

  test('DELETE of a pending new version removes the old version too', async () => {
    remote.putFile(at('/a'), 'old');
    await drive.put(at('/a'), '');
    await drive.files.remove(at('/a'), { recoverable: false });
    expect(remote.paths).toEqual([]);
  });

  test('a recoverable DELETE of a pending file puts what was written into the trash', async () => {
    await drive.put(at('/a'), 'text');
    await drive.files.remove(at('/a'), { recoverable: true });
    expect(remote.trash.map(({ path }) => path)).toEqual(['/a']);
  });

  test('a failed DELETE does not lose the pending write', async () => {
    remote.putFile(at('/a'), 'old');
    await drive.files.keepPlaceholder(at('/b'), 60_000);
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/c'), 'x');
    await gate.reached;
    await drive.put(at('/a'), 'new');
    remote.failNext('remove', 'no-permission');
    const removed = faultOf(drive.files.remove(at('/a'), { recoverable: false }));
    gate.release();
    expect(await removed).toBe('forbidden');
    await drive.files.commitPlaceholder(at('/b'));
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('new');
  });

  test('DELETE of a folder with pending files brings none of them back', async () => {
    await drive.files.createFolder(at('/f'));
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/f/a'), 'x');
    await gate.reached;
    await Promise.all([drive.put(at('/f/b'), 'x'), drive.put(at('/f/c'), '')]);
    const removed = drive.files.remove(at('/f'), { recoverable: false });
    gate.release();
    await removed;
    await drive.clock.advance(60_000);
    expect([remote.paths, drive.files.depth().files]).toEqual([[], 0]);
    expect(await faultOf(drive.put(at('/f/d'), 'x'))).toBe('parent-missing');
  });

  test('MOVE and COPY of a pending file move and copy what was written', async () => {
    await drive.files.createFolder(at('/f'));
    await Promise.all([drive.put(at('/f/a'), 'x'), drive.put(at('/f/b'), '')]);
    await drive.files.copy(at('/f'), at('/copy'), { overwrite: false, shallow: false });
    await drive.files.move(at('/f'), at('/moved'), { overwrite: false });
    expect(remote.paths).toEqual(['/copy', '/copy/a', '/copy/b', '/moved', '/moved/a', '/moved/b']);
    await drive.put(at('/target'), 'old');
    await drive.put(at('/source'), 'new');
    expect(await faultOf(drive.files.move(at('/source'), at('/target'), { overwrite: false }))).toBe(
      'exists',
    );
    expect(await drive.files.move(at('/source'), at('/target'), { overwrite: true })).toMatchObject({
      created: false,
    });
    expect(remote.text(at('/target'))).toBe('new');
  });

  test('MOVE of a pending file fails while the service is away, and the write stays', async () => {
    await drive.put(at('/a'), '');
    remote.failNext('write', 'offline');
    expect(await faultOf(drive.files.move(at('/a'), at('/b'), { overwrite: false }))).toBe('offline');
    expect(await drive.fileAt(at('/a'))).toBeDefined();
    await drive.clock.advance(60_000);
    await drive.untilLanded();
    expect(remote.paths).toEqual(['/a']);
  });

  test('MKCOL at the path of a pending file is refused', async () => {
    await drive.put(at('/a'), '');
    expect(await faultOf(drive.files.createFolder(at('/a')))).toBe('exists');
    expect(await faultOf(drive.files.createFolder(at('/a/b')))).toBe('parent-missing');
    expect(await faultOf(drive.put(at('/a/b'), 'x'))).toBe('parent-missing');
    expect(await faultOf(drive.files.list(at('/a')))).toBe('not-a-folder');
  });

  test('a shared link of a pending file is made after the file has landed', async () => {
    await drive.put(at('/a'), '');
    expect(await drive.files.sharedLink(at('/a'))).toBeUndefined();
    await drive.files.unshareLink(at('/a'));
    const link = await drive.files.shareLink(at('/a'), {});
    expect(await drive.files.sharedLink(at('/a'))).toEqual(link);
  });

  test('a pending file has no links, and gets one after it has landed', async () => {
    await drive.put(at('/a'), '');
    expect(await drive.files.sharedLinks(at('/a'))).toEqual([]);
    const link = await drive.files.createLink(at('/a'), {});
    expect(await drive.files.sharedLinks(at('/a'))).toEqual([{ ...link, kind: 'file', path: at('/a') }]);
  });
});
