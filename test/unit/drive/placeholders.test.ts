import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Path, ROOT } from '../../../src/util/path.ts';
import { property } from '../../contract/properties.contract.ts';
import { bodyOf, MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';
import { REFUSED_NAME } from '../../support/odd-names.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

const touch = (path: Path, modifiedMs?: number) =>
  drive.files.write(path, bodyOf(), { mode: { if: 'any' }, ...(modifiedMs !== undefined && { modifiedMs }) });

/** Resolves when no placeholder is left. */
async function untilNoneHeld(): Promise<void> {
  while (drive.files.status().placeholders > 0) await turn();
}

describe('placeholders', () => {
  test('an empty file is committed when its delay of 5 seconds ends, and not before', async () => {
    await touch(at('/a'));
    await drive.clock.advance(4_999);
    expect(remote.paths).toEqual([]);
    await drive.clock.advance(1);
    await untilNoneHeld();
    expect(remote.paths).toEqual(['/a']);
    expect(remote.count('write')).toBe(1);
  });

  test.each(['', 'body'])(
    'of two concurrent creations, one with an empty body and one with the body %j, one succeeds',
    async (other) => {
      const create = (text: string) =>
        drive.files.write(at('/lock'), bodyOf(text), { mode: { if: 'absent' }, sizeBytes: text.length });
      const outcomes = await Promise.allSettled([create(''), create(other)]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    },
  );

  test('a body written to a placeholder is sent with one commit and takes over its properties', async () => {
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

  test.each(['its body arrives', 'it is committed empty'])(
    'a property that a request sets for a placeholder, while %s, belongs to the file',
    async (how) => {
      const { entry } = await touch(at('/a'));
      if (how === 'its body arrives') await drive.write(at('/a'), 'body');
      else await drive.files.commitPlaceholder(at('/a'));
      const { properties } = drive.files.state;
      await properties.change(entry.id, [{ set: property('late') }]);
      const { id } = await drive.fileAt(at('/a'));
      expect(id).not.toBe(entry.id);
      expect((await properties.of([id])).get(id)).toEqual([property('late')]);
    },
  );

  test('a placeholder is not committed while its body is being received, even for ten minutes', async () => {
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

  test('a MOVE of a placeholder whose body is being received is refused with busy', async () => {
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

  test('a placeholder whose body fails is still listed, and committed empty when due', async () => {
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

  test('a locked placeholder is committed when its lock ends, also after it was written empty again', async () => {
    await drive.files.keepPlaceholder(at('/a'), 3_600_000);
    await touch(at('/a'));
    await drive.clock.advance(3_599_000);
    expect(remote.paths).toEqual([]);
    await drive.clock.advance(1_000);
    await untilNoneHeld();
    expect(remote.paths).toEqual(['/a']);
  });

  test('a placeholder has no shared link, and creating one commits it', async () => {
    await touch(at('/a'));
    const before = remote.questions;
    expect(await drive.files.sharedLink(at('/a'))).toBeUndefined();
    await drive.files.unshareLink(at('/a'));
    expect(remote.questions).toBe(before);
    expect(await drive.files.shareLink(at('/a'), {})).toMatchObject({ visibility: 'public' });
    expect(remote.paths).toEqual(['/a']);
  });

  test('placeholders and their properties survive a kill', async () => {
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

  test('a placeholder committed right before a kill is not committed again and keeps its properties', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
    drive.kill();
    const committed = remote.putFile(at('/a'), '');
    await drive.start();
    await untilNoneHeld();
    expect(remote.entryAt(at('/a'))).toEqual(committed);
    expect((await drive.state.properties.of([committed.id])).get(committed.id)).toHaveLength(1);
  });

  /** Returns the properties of the file at `/a` once no placeholder is left. */
  async function propertiesOfA(): Promise<readonly unknown[]> {
    await untilNoneHeld();
    const { id } = await drive.fileAt(at('/a'));
    return (await drive.state.properties.of([id])).get(id) ?? [];
  }

  test('a placeholder whose body was committed right before a kill keeps its properties', async () => {
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

  test('a placeholder whose body is committed while the state store fails keeps its properties', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: property('a') }]);
    vi.spyOn(drive.state.properties, 'rename').mockRejectedValueOnce(new Error('the disk is full'));
    await expect(drive.write(at('/a'), 'body')).rejects.toThrow('the disk is full');
    await drive.clock.advance(60_000);
    expect(await propertiesOfA()).toEqual([property('a')]);
  });

  test('a placeholder gives none of its properties to a file from elsewhere that has its own', async () => {
    const { entry } = await touch(at('/a'));
    await drive.state.properties.change(entry.id, [{ set: property('a') }]);
    const theirs = remote.putFile(at('/a'), 'theirs');
    await drive.state.properties.change(theirs.id, [{ set: property('b') }]);
    await drive.clock.advance(5_000);
    expect(await propertiesOfA()).toEqual([property('b')]);
    expect(await drive.state.properties.ids()).toEqual([theirs.id]);
  });

  test('placeholders are committed when the drive closes', async () => {
    await touch(at('/a'));
    await drive.files.keepPlaceholder(at('/b'), 3_600_000);
    await drive.end();
    expect(remote.paths).toEqual(['/a', '/b']);
    await drive.start();
  });

  test('a placeholder whose commit fails stays listed and is committed at the next try', async () => {
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

  test('a placeholder gives way to a file made elsewhere at the same path', async () => {
    await touch(at('/a'));
    remote.putFile(at('/a'), 'theirs');
    await drive.clock.advance(5_000);
    await untilNoneHeld();
    expect(remote.text(at('/a'))).toBe('theirs');
    expect(await drive.text(at('/a'))).toBe('theirs');
  });

  test('a write under the revision of a placeholder does not replace a file made elsewhere meanwhile', async () => {
    const { entry } = await touch(at('/a'));
    remote.holdFeed();
    remote.putFile(at('/a'), 'theirs');
    const rev = entry.kind === 'file' ? entry.rev : '';
    const writing = drive.files.write(at('/a'), bodyOf('ours'), { mode: { if: 'rev', rev } });
    await expect(writing).rejects.toMatchObject({ fault: 'changed' });
    expect(remote.text(at('/a'))).toBe('theirs');
  });

  test('removing a placeholder makes no call, and it is never committed', async () => {
    await touch(at('/a'));
    const before = remote.questions;
    await drive.files.remove(at('/a'), { recoverable: false });
    expect(await drive.files.stat(at('/a'))).toBeUndefined();
    expect(remote.questions).toBe(before);
    await drive.clock.advance(60_000);
    expect(remote.paths).toEqual([]);
  });

  test('a placeholder in a removed folder does not bring the folder back', async () => {
    await drive.files.createFolder(at('/f'));
    await touch(at('/f/a'));
    await drive.files.remove(at('/f'), { recoverable: false });
    await drive.clock.advance(60_000);
    expect(remote.paths).toEqual([]);
    expect(await drive.names(ROOT)).toEqual([]);
  });

  test('a placeholder has the modification time its client gave or set later, also after its commit', async () => {
    const modifiedMs = Date.UTC(2020, 0, 1);
    expect(await touch(at('/a'), modifiedMs)).toMatchObject({ entry: { modifiedMs } });
    const laterMs = Date.UTC(2021, 0, 1);
    expect(await drive.files.setModified(at('/a'), laterMs)).toMatchObject({ modifiedMs: laterMs });
    await drive.files.commitPlaceholder(at('/a'));
    expect(remote.entryAt(at('/a'))).toMatchObject({ modifiedMs: laterMs });
  });

  test('a placeholder with a name the service refuses is refused with bad-name', async () => {
    const refused = at(`/${REFUSED_NAME}`);
    await expect(touch(refused)).rejects.toMatchObject({ fault: 'bad-name' });
    await expect(drive.files.keepPlaceholder(refused, 0)).rejects.toMatchObject({ fault: 'bad-name' });
    expect(await drive.names(ROOT)).toEqual([]);
  });

  test('a placeholder written twice, in different letter case, stays one file with its first name', async () => {
    const first = await touch(at('/a'));
    expect(await touch(at('/A'))).toMatchObject({ created: false, entry: { id: first.entry.id, name: 'a' } });
    expect(await drive.names(ROOT)).toEqual(['a']);
  });

  test('a listing with a placeholder is the same object until something changes', async () => {
    await touch(at('/a'));
    const listing = await drive.files.list(ROOT);
    expect(await drive.files.list(ROOT)).toBe(listing);
    await touch(at('/b'));
    expect(await drive.files.list(ROOT)).not.toBe(listing);
  });

  test('a placeholder is never missing from stat or a listing while it is committed', async () => {
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
