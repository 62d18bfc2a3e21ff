import { afterEach, expect, test } from 'vitest';
import { faultOf } from '../../support/fault-of.ts';
import { MemoryDrive } from '../../support/memory-drive.ts';
import { at } from '../../support/memory-remote.ts';

let drive: MemoryDrive;

afterEach(() => drive.close());

test('a drive gives the thumbnail of exactly the revision that is asked for', async () => {
  drive = await MemoryDrive.open();
  const { rev } = await drive.put(at('/a.jpg'), 'a');
  expect(Buffer.from(await drive.files.thumbnail(at('/a.jpg'), rev)).toString()).toBe(`image of ${rev}`);
  expect(await faultOf(drive.files.thumbnail(at('/a.jpg'), 'another'))).toBe('not-found');
  expect(await faultOf(drive.files.thumbnail(at('/b.jpg'), rev))).toBe('not-found');
});

test('local files and empty files have no thumbnail, and the service is not asked for them', async () => {
  drive = await MemoryDrive.open();
  for (const [name, text] of [
    ['/._a.jpg', 'local'],
    ['/empty.jpg', ''],
  ] as const) {
    const { rev } = await drive.put(at(name), text);
    expect(await faultOf(drive.files.thumbnail(at(name), rev))).toBe('unsupported');
  }
  expect(drive.remote.count('thumbnail')).toBe(0);
});

test('a pending file has no thumbnail until it has landed, and then by the tag that clients know', async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  const gate = drive.remote.holdNext('write', 'begin');
  const { rev } = await drive.put(at('/a.jpg'), 'a');
  expect(await faultOf(drive.files.thumbnail(at('/a.jpg'), rev))).toBe('unsupported');
  gate.release();
  await drive.untilLanded();
  const image = Buffer.from(await drive.files.thumbnail(at('/a.jpg'), rev)).toString();
  const stored = drive.remote.entryAt(at('/a.jpg'));
  expect(image).toBe(`image of ${stored?.kind === 'file' ? stored.rev : ''}`);
  expect(await faultOf(drive.files.thumbnail(at('/a.jpg'), 'another'))).toBe('not-found');
});
