import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { faultOf } from '../../support/fault-of.ts';
import { bodyOf, MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  remote.putFile(at('/From/file'), 'text');
  remote.putFolder(at('/To'));
  drive = await MemoryDrive.open(remote);
  await drive.files.list(at('/From'));
  await drive.files.list(at('/To'));
});

afterEach(() => drive.close());

const goes = {
  remove: () => drive.files.remove(at('/From'), { recoverable: true }),
  move: () => drive.files.move(at('/From'), at('/To/From'), { overwrite: false }),
} as const;

const comes = {
  'a short file': () => drive.write(at('/From/new'), 'new'),
  'an empty file': () => drive.files.write(at('/From/new'), bodyOf(''), { mode: { if: 'any' } }),
  'a held file': () => drive.files.keepPlaceholder(at('/From/new'), 60_000),
  'a local file': () => drive.write(at('/From/.DS_Store'), 'new'),
  'a folder': () => drive.files.createFolder(at('/From/new')),
  'a copy': () => drive.files.copy(at('/From/file'), at('/From/new'), { overwrite: false, shallow: false }),
} as const;

describe.each(['remove', 'move'] as const)('while the %s of a folder is on its way', (call) => {
  test.each(Object.keys(comes) as (keyof typeof comes)[])(
    '%s that is put into it is refused with parent-missing and brings nothing back',
    async (what) => {
      const gate = remote.holdNext(call, 'end');
      const going = goes[call]();
      await gate.reached;
      const coming = faultOf(comes[what]());
      await turn(20);
      gate.release();
      await going;
      expect(['parent-missing', 'not-found']).toContain(await coming);
      await drive.clock.advance(120_000);
      expect(remote.paths).toEqual(call === 'move' ? ['/To', '/To/From', '/To/From/file'] : ['/To']);
      expect(await drive.files.stat(at('/From'))).toBeUndefined();
      expect(await drive.files.stat(at('/From/.DS_Store'))).toBeUndefined();
    },
  );
});

test('a folder is moved after the commits into it that were on their way, and takes their files along', async () => {
  const gate = remote.holdNext('write', 'begin');
  const written = drive.write(at('/From/new'), 'new');
  await gate.reached;
  const moved = goes.move();
  await turn(20);
  expect(remote.count('move')).toBe(0);
  gate.release();
  await Promise.all([written, moved]);
  expect(remote.paths).toEqual(['/To', '/To/From', '/To/From/file', '/To/From/new']);
});

test('a held file that came while its folder waited to be moved moves with it', async () => {
  const upload = remote.holdNext('write', 'begin');
  const written = drive.write(at('/From/other'), 'other');
  await upload.reached;
  const held = drive.files.keepPlaceholder(at('/From/new'), 60_000);
  const moved = goes.move();
  await held;
  upload.release();
  await Promise.all([written, moved]);
  expect(await drive.names(at('/To/From'))).toEqual(['file', 'new', 'other']);
  await drive.files.commitPlaceholder(at('/To/From/new'));
  expect(remote.paths).toContain('/To/From/new');
  expect(remote.paths).not.toContain('/From');
});

describe.each([
  [
    'move',
    (options: object) => drive.files.move(at('/From/file'), at('/To/file'), { overwrite: true, ...options }),
  ],
  [
    'copy',
    (options: object) =>
      drive.files.copy(at('/From/file'), at('/To/file'), { overwrite: true, shallow: false, ...options }),
  ],
] as const)('a %s', (_, relocate) => {
  test('of a revision that was replaced a moment ago, unseen yet, is refused as changed', async () => {
    const { rev } = await drive.fileAt(at('/From/file'));
    remote.holdFeed();
    remote.putFile(at('/From/file'), 'theirs');
    expect(await faultOf(relocate({ rev }))).toBe('changed');
    expect(remote.text(at('/From/file'))).toBe('theirs');
    expect(remote.entryAt(at('/To/file'))).toBeUndefined();
  });

  test('onto a revision that was replaced a moment ago, unseen yet, is refused as changed', async () => {
    const { rev: targetRev } = await drive.put(at('/To/file'), 'old');
    remote.holdFeed();
    remote.putFile(at('/To/file'), 'theirs');
    expect(await faultOf(relocate({ targetRev }))).toBe('changed');
    expect(remote.text(at('/To/file'))).toBe('theirs');
    expect(remote.trash).toEqual([]);
  });

  test('of the revision that is there, onto the one that is there, is done', async () => {
    const { rev: targetRev } = await drive.put(at('/To/file'), 'old');
    const { rev } = await drive.fileAt(at('/From/file'));
    await relocate({ rev, targetRev });
    expect(remote.text(at('/To/file'))).toBe('text');
  });

  test('waits for the write that is on its way to its source, and is refused as changed', async () => {
    const { rev } = await drive.fileAt(at('/From/file'));
    const gate = remote.holdNext('write', 'begin');
    const written = drive.write(at('/From/file'), 'newer');
    await gate.reached;
    const relocated = faultOf(relocate({ rev }));
    await turn(20);
    gate.release();
    await written;
    expect(await relocated).toBe('changed');
    expect(remote.text(at('/From/file'))).toBe('newer');
  });
});
