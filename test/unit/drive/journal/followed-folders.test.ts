import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;
/** The writes of the old path and of the new path. */
let older: string;
let newer: string;

afterEach(() => drive.close());

const copies = () =>
  remote.paths.filter((path) => path.includes('conflicted copy')).map((path) => remote.text(at(path)));

/** Tries the write with this id now, even in a pause. Resolves with whether it has landed. */
const retry = async (id: string): Promise<boolean> =>
  drive.files.pending?.retry(id).then(
    () => true,
    () => false,
  ) ?? false;

/** Tries a write that may replace a file at its new path: the first try finds the revision that the move has given it. */
const land = async (id: string): Promise<boolean> => (await retry(id)) || retry(id);

async function landed(): Promise<void> {
  await drive.clock.during(drive.untilLanded());
  expect(drive.lost()).toEqual([]);
}

describe.each([
  ['a new file', undefined],
  ['a file with an older version', 'v0'],
])('two pending writes of %s, the first accepted before its folder was renamed elsewhere', (_, original) => {
  beforeEach(async () => {
    drive = await MemoryDrive.open(undefined, { writeBack: true });
    ({ remote } = drive);
    remote.putFolder(at('/a'));
    if (original !== undefined) remote.putFile(at('/a/f'), original);
    await drive.feedTold();
    // All writes pause. An outage would not do: it ends with the next answered call.
    remote.failNext('write', 'insufficient-space');
    await drive.put(at('/first'), 'x');
    while (drive.warnings.length === 0) await turn();
    await drive.put(at('/a/f'), 'older');
    remote.rename(at('/a'), at('/b'));
    await drive.feedTold();
    await drive.put(at('/b/f'), 'newer');
    [, older = '', newer = ''] = await drive.pendingIds();
  });

  test('the older write lands first when it is tried first, and the newer one replaces it', async () => {
    expect(await land(older)).toBe(true);
    expect(remote.text(at('/b/f'))).toBe('older');
    expect(await drive.text(at('/b/f'))).toBe('newer');
    await landed();
    expect([remote.text(at('/b/f')), remote.paths]).toEqual(['newer', ['/b', '/b/f', '/first']]);
    expect(await drive.text(at('/b/f'))).toBe('newer');
  });

  test('the newer write is sent after the older one, and not at the same time, once the older one is at its path', async () => {
    if (original !== undefined) expect(await retry(older)).toBe(false);
    const written = remote.count('write');
    const gate = remote.holdNext('write', 'begin');
    const tried = retry(older);
    await gate.reached;
    const followed = retry(newer);
    await turn(50);
    expect(remote.count('write')).toBe(written + 1);
    gate.release();
    expect([await tried, await followed]).toEqual([true, true]);
    expect([remote.text(at('/b/f')), copies()]).toEqual(['newer', []]);
    await landed();
  });

  test('the order of both writes survives a kill after the older one has followed its folder', async () => {
    remote.failNext('write', 'insufficient-space');
    expect(await retry(older)).toBe(false);
    expect(await drive.text(at('/b/f'))).toBe('newer');
    drive.kill();
    await drive.start();
    expect(await drive.text(at('/b/f'))).toBe('newer');
    await landed();
    expect([remote.text(at('/b/f')), copies()]).toEqual(['newer', []]);
  });

  test('the newer write stays when it is being sent while the older one is tried, which becomes a conflicted copy', async () => {
    const gate = remote.holdNext('write', 'begin');
    const sent = retry(newer);
    await gate.reached;
    expect(await retry(older)).toBe(false);
    expect(await drive.text(at('/b/f'))).toBe('newer');
    gate.release();
    expect(await sent).toBe(true);
    await landed();
    expect([remote.text(at('/b/f')), copies()]).toEqual(['newer', ['older']]);
    expect(await drive.text(at('/b/f'))).toBe('newer');
  });

  test('the newer write stays visible when it has landed before the older one is tried, which becomes a conflicted copy', async () => {
    expect(await retry(newer)).toBe(true);
    const gate = remote.holdNext('write', 'begin');
    const tried = retry(older);
    await gate.reached;
    expect(await drive.text(at('/b/f'))).toBe('newer');
    await drive.put(at('/b/f'), 'newest');
    gate.release();
    expect(await tried).toBe(true);
    await landed();
    expect([remote.text(at('/b/f')), copies()]).toEqual(['newest', ['older']]);
  });

  test('a newer write whose answer was lost is recognised, and the older one becomes a conflicted copy', async () => {
    remote.failNext('write', 'insufficient-space', { late: true });
    expect(await retry(newer)).toBe(false);
    expect(remote.text(at('/b/f'))).toBe('newer');
    await landed();
    expect([remote.text(at('/b/f')), copies()]).toEqual(['newer', ['older']]);
  });

  test('a deletion of the old path while its writes are about to follow the folder removes them and no others', async () => {
    const gate = remote.holdNext('locate', 'begin');
    const tried = retry(older);
    await gate.reached;
    await drive.put(at('/a/f'), 'second');
    const removed = drive.files.remove(at('/a/f'), { recoverable: false });
    gate.release();
    expect(await tried).toBe(false);
    await removed;
    await landed();
    expect([remote.text(at('/b/f')), copies()]).toEqual(['newer', []]);
  });

  test('the properties of the newer write are those of the file, under the id that clients saw', async () => {
    const property = { namespace: 'n', name: 'p', xml: '<p/>' };
    const { id: shownAs } = await drive.fileAt(at('/b/f'));
    await drive.state.properties.change(shownAs, [{ set: property }]);
    expect(await land(older)).toBe(true);
    await landed();
    const { id } = await drive.fileAt(at('/b/f'));
    expect((await drive.state.properties.of([id])).get(id)).toEqual([property]);
    expect([...(await drive.state.properties.ids())]).toEqual([id]);
  });
});
