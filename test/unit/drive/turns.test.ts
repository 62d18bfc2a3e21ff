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

const departures = {
  remove: () => drive.files.remove(at('/From'), { recoverable: true }),
  move: () => drive.files.move(at('/From'), at('/To/From'), { overwrite: false }),
} as const;

const arrivals = {
  'a short file': () => drive.write(at('/From/new'), 'new'),
  'an empty file': () => drive.files.write(at('/From/new'), bodyOf(''), { mode: { if: 'any' } }),
  'a placeholder': () => drive.files.keepPlaceholder(at('/From/new'), 60_000),
  'a local file': () => drive.write(at('/From/.DS_Store'), 'new'),
  'a folder': () => drive.files.createFolder(at('/From/new')),
  'a copy': () => drive.files.copy(at('/From/file'), at('/From/new'), { overwrite: false, shallow: false }),
} as const;

describe.each(['remove', 'move'] as const)('a write into a folder during its %s', (call) => {
  test.each(Object.keys(arrivals) as (keyof typeof arrivals)[])(
    '%s created in a folder that is being removed or moved is refused as parent-missing and brings nothing back',
    async (what) => {
      const gate = remote.holdNext(call, 'end');
      const departure = departures[call]();
      await gate.reached;
      const arrival = faultOf(arrivals[what]());
      await turn(20);
      gate.release();
      await departure;
      expect(await arrival).toBe('parent-missing');
      await drive.clock.advance(120_000);
      expect(remote.paths).toEqual(call === 'move' ? ['/To', '/To/From', '/To/From/file'] : ['/To']);
      expect(await drive.files.stat(at('/From'))).toBeUndefined();
      expect(await drive.files.stat(at('/From/.DS_Store'))).toBeUndefined();
    },
  );
});

test('a MOVE of a folder waits for the commits into it and moves their files too', async () => {
  const gate = remote.holdNext('write', 'begin');
  const written = drive.write(at('/From/new'), 'new');
  await gate.reached;
  const moved = departures.move();
  await turn(20);
  expect(remote.count('move')).toBe(0);
  gate.release();
  await Promise.all([written, moved]);
  expect(remote.paths).toEqual(['/To', '/To/From', '/To/From/file', '/To/From/new']);
});

test('a placeholder created while its folder waits to be moved is moved with it', async () => {
  const upload = remote.holdNext('write', 'begin');
  const written = drive.write(at('/From/other'), 'other');
  await upload.reached;
  const placeholder = drive.files.keepPlaceholder(at('/From/new'), 60_000);
  const moved = departures.move();
  await placeholder;
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
] as const)('conditions of a file %s', (_, relocate) => {
  test('a MOVE or COPY whose source was replaced elsewhere a moment ago is refused as changed', async () => {
    const { rev } = await drive.fileAt(at('/From/file'));
    remote.holdFeed();
    remote.putFile(at('/From/file'), 'theirs');
    expect(await faultOf(relocate({ rev }))).toBe('changed');
    expect(remote.text(at('/From/file'))).toBe('theirs');
    expect(remote.entryAt(at('/To/file'))).toBeUndefined();
  });

  test('a MOVE or COPY whose target was replaced elsewhere a moment ago is refused as changed', async () => {
    const { rev: targetRev } = await drive.put(at('/To/file'), 'old');
    remote.holdFeed();
    remote.putFile(at('/To/file'), 'theirs');
    expect(await faultOf(relocate({ targetRev }))).toBe('changed');
    expect(remote.text(at('/To/file'))).toBe('theirs');
    expect(remote.trash).toEqual([]);
  });

  test('a MOVE or COPY under the current revisions of source and target succeeds', async () => {
    const { rev: targetRev } = await drive.put(at('/To/file'), 'old');
    const { rev } = await drive.fileAt(at('/From/file'));
    await relocate({ rev, targetRev });
    expect(remote.text(at('/To/file'))).toBe('text');
  });

  test('a MOVE or COPY waits for a write to its source and is refused as changed', async () => {
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
