import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Path, ROOT } from '../../../src/util/path.ts';
import { property } from '../../contract/properties.contract.ts';
import { bodyOf, MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

const touch = (path: Path, modifiedMs?: number) =>
  drive.files.write(path, bodyOf(), { mode: { if: 'any' }, ...(modifiedMs !== undefined && { modifiedMs }) });

/** Resolves when nothing is held any more. */
async function untilNoneHeld(): Promise<void> {
  while (drive.files.status().placeholders > 0) await turn();
}

describe('an empty file', () => {
  test('is not at the service until it is due', async () => {
    await touch(at('/a'));
    await drive.clock.advance(4_999);
    expect(remote.paths).toEqual([]);
    await drive.clock.advance(1);
    await untilNoneHeld();
    expect(remote.paths).toEqual(['/a']);
    expect(remote.count('write')).toBe(1);
  });

  test.each(['', 'body'])('of two that may only create, one empty and one %j, one wins', async (other) => {
    const create = (text: string) =>
      drive.files.write(at('/lock'), bodyOf(text), { mode: { if: 'absent' }, sizeBytes: text.length });
    const outcomes = await Promise.allSettled([create(''), create(other)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('becomes its body with one commit, and keeps its properties', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
    const written = await drive.write(at('/a'), 'body');
    await drive.clock.advance(60_000);
    expect(remote.count('write')).toBe(1);
    expect(remote.text(at('/a'))).toBe('body');
    const { id } = written.entry;
    expect((await drive.state.properties.of([id, entry.id])).get(id)).toHaveLength(1);
    expect((await drive.state.properties.of([entry.id])).size).toBe(0);
  });

  test('is not committed while its body is on its way, however long that takes', async () => {
    await touch(at('/a'));
    let send = () => {};
    const sent = new Promise<void>((resolve) => {
      send = resolve;
    });
    async function* slow() {
      yield Buffer.from('bo');
      await sent;
      yield Buffer.from('dy');
    }
    const writing = drive.files.write(at('/a'), slow(), { mode: { if: 'any' } });
    await turn(5);
    await drive.clock.advance(600_000);
    expect(remote.paths).toEqual([]);
    expect(await drive.names(ROOT)).toEqual(['a']);
    send();
    await writing;
    expect(remote.text(at('/a'))).toBe('body');
    expect(remote.count('write')).toBe(1);
  });

  test('is not moved while its body is on its way', async () => {
    await touch(at('/a'));
    let send = () => {};
    const sent = new Promise<void>((resolve) => {
      send = resolve;
    });
    async function* slow() {
      yield Buffer.from('body');
      await sent;
    }
    const writing = drive.files.write(at('/a'), slow(), { mode: { if: 'any' } });
    await turn(5);
    const moving = drive.files.move(at('/a'), at('/b'), { overwrite: false });
    await expect(moving).rejects.toMatchObject({ fault: 'busy' });
    send();
    await writing;
    expect(remote.text(at('/a'))).toBe('body');
  });

  test('whose body fails is still there, and committed when due', async () => {
    await touch(at('/a'));
    async function* lost() {
      yield Buffer.from('bo');
      throw new Error('lost');
    }
    await expect(drive.files.write(at('/a'), lost(), { mode: { if: 'any' } })).rejects.toThrow('lost');
    expect(await drive.names(ROOT)).toEqual(['a']);
    await drive.clock.advance(5_000);
    await untilNoneHeld();
    expect(remote.text(at('/a'))).toBe('');
  });

  test('that is locked waits as long as the lock, also when it is written empty again', async () => {
    await drive.files.keepPlaceholder(at('/a'), 3_600_000);
    await touch(at('/a'));
    await drive.clock.advance(3_599_000);
    expect(remote.paths).toEqual([]);
    await drive.clock.advance(1_000);
    await untilNoneHeld();
    expect(remote.paths).toEqual(['/a']);
  });

  test('has no link, and is committed to get one', async () => {
    await touch(at('/a'));
    const before = remote.questions;
    expect(await drive.files.sharedLink(at('/a'))).toBeUndefined();
    await drive.files.unshareLink(at('/a'));
    expect(remote.questions).toBe(before);
    expect(await drive.files.shareLink(at('/a'), {})).toMatchObject({ visibility: 'public' });
    expect(remote.paths).toEqual(['/a']);
  });

  test('survives a kill', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
    await drive.files.keepPlaceholder(at('/b'), 3_600_000);
    drive.kill();
    await drive.start();
    await untilNoneHeld();
    expect(remote.paths).toEqual(['/a', '/b']);
    const { id } = (await drive.files.stat(at('/a'))) ?? { id: '' };
    expect((await drive.state.properties.of([id])).get(id)).toHaveLength(1);
  });

  test('that a kill caught right after its commit is committed once, and keeps its properties', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
    drive.kill();
    const committed = remote.putFile(at('/a'), '');
    await drive.start();
    await untilNoneHeld();
    expect(remote.entryAt(at('/a'))).toEqual(committed);
    expect((await drive.state.properties.of([committed.id])).get(committed.id)).toHaveLength(1);
  });

  /** The properties of the file at `/a`, once nothing is held. */
  async function propertiesOfA(): Promise<readonly unknown[]> {
    await untilNoneHeld();
    const { id } = await drive.fileAt(at('/a'));
    return (await drive.state.properties.of([id])).get(id) ?? [];
  }

  test('An empty file whose body a kill caught right after its commit keeps its properties', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: property('a') }]);
    const gate = remote.holdNext('write', 'end');
    drive.write(at('/a'), 'body').catch(() => {});
    await gate.reached;
    drive.kill();
    await drive.start();
    expect(await propertiesOfA()).toEqual([property('a')]);
    expect(await drive.text(at('/a'))).toBe('body');
  });

  test('An empty file whose body is stored while the state takes nothing keeps its properties', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: property('a') }]);
    vi.spyOn(drive.state.properties, 'rename').mockRejectedValueOnce(new Error('the disk is full'));
    await expect(drive.write(at('/a'), 'body')).rejects.toThrow('the disk is full');
    await drive.clock.advance(60_000);
    expect(await propertiesOfA()).toEqual([property('a')]);
  });

  test('An empty file gives its properties to no file that has got some of its own meanwhile', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: property('a') }]);
    const theirs = remote.putFile(at('/a'), 'theirs');
    await drive.state.properties.change(theirs.id, [{ set: property('b') }]);
    await drive.clock.advance(5_000);
    expect(await propertiesOfA()).toEqual([property('b')]);
    expect(await drive.state.properties.ids()).toEqual([theirs.id]);
  });

  test('is committed when the drive closes', async () => {
    await touch(at('/a'));
    await drive.files.keepPlaceholder(at('/b'), 3_600_000);
    await drive.end();
    expect(remote.paths).toEqual(['/a', '/b']);
    await drive.start();
  });

  test('is tried again when the service fails', async () => {
    await touch(at('/a'));
    remote.failNext('write', 'offline');
    await drive.clock.advance(5_000);
    await turn(5);
    expect(remote.paths).toEqual([]);
    expect(await drive.names(ROOT)).toEqual(['a']);
    await drive.clock.advance(5_000);
    await untilNoneHeld();
    expect(remote.paths).toEqual(['/a']);
  });

  test('gives way to a file that somebody else made there meanwhile', async () => {
    await touch(at('/a'));
    remote.putFile(at('/a'), 'theirs');
    await drive.clock.advance(5_000);
    await untilNoneHeld();
    expect(remote.text(at('/a'))).toBe('theirs');
    expect(await drive.text(at('/a'))).toBe('theirs');
  });

  test('of which somebody names the revision replaces nothing else', async () => {
    const { entry } = await touch(at('/a'));
    remote.holdFeed();
    remote.putFile(at('/a'), 'theirs');
    const rev = entry.kind === 'file' ? entry.rev : '';
    const writing = drive.files.write(at('/a'), bodyOf('ours'), { mode: { if: 'rev', rev } });
    await expect(writing).rejects.toMatchObject({ fault: 'changed' });
    expect(remote.text(at('/a'))).toBe('theirs');
  });

  test('costs no call when it is removed', async () => {
    await touch(at('/a'));
    const before = remote.questions;
    await drive.files.remove(at('/a'), { recoverable: false });
    expect(await drive.files.stat(at('/a'))).toBeUndefined();
    expect(remote.questions).toBe(before);
    await drive.clock.advance(60_000);
    expect(remote.paths).toEqual([]);
  });

  test('does not bring back the folder it was in', async () => {
    await drive.files.createFolder(at('/f'));
    await touch(at('/f/a'));
    await drive.files.remove(at('/f'), { recoverable: false });
    await drive.clock.advance(60_000);
    expect(remote.paths).toEqual([]);
    expect(await drive.names(ROOT)).toEqual([]);
  });

  test('has the time its sender gave, also at the service', async () => {
    const modifiedMs = Date.UTC(2020, 0, 1);
    expect(await touch(at('/a'), modifiedMs)).toMatchObject({ entry: { modifiedMs } });
    const laterMs = Date.UTC(2021, 0, 1);
    expect(await drive.files.setModified(at('/a'), laterMs)).toMatchObject({ modifiedMs: laterMs });
    await drive.files.commitPlaceholder(at('/a'));
    expect(remote.entryAt(at('/a'))).toMatchObject({ modifiedMs: laterMs });
  });

  test('whose name the service may refuse is asked for before it is acknowledged', async () => {
    await expect(touch(at('/back\\slash'))).rejects.toMatchObject({ fault: 'bad-name' });
    await expect(drive.files.keepPlaceholder(at('/blank '), 0)).rejects.toMatchObject({ fault: 'bad-name' });
    expect(await drive.names(ROOT)).toEqual([]);
  });

  test('written twice stays one file', async () => {
    const first = await touch(at('/a'));
    expect(await touch(at('/A'))).toMatchObject({ created: false, entry: { id: first.entry.id, name: 'a' } });
    expect(await drive.names(ROOT)).toEqual(['a']);
  });

  test('in a listing is the same listing until something changes', async () => {
    await touch(at('/a'));
    const listing = await drive.files.list(ROOT);
    expect(await drive.files.list(ROOT)).toBe(listing);
    await touch(at('/b'));
    expect(await drive.files.list(ROOT)).not.toBe(listing);
  });

  test('committed while somebody looks is never gone', async () => {
    await touch(at('/a'));
    const gate = remote.holdNext('write', 'end');
    const settling = drive.files.commitPlaceholder(at('/a'));
    await gate.reached;
    expect(await drive.names(ROOT)).toEqual(['a']);
    gate.release();
    for (let step = 0; step < 20; step++) {
      expect(await drive.files.stat(at('/a'))).toBeDefined();
      expect(await drive.names(ROOT)).toEqual(['a']);
    }
    await settling;
  });
});
