import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import { CachedFolder } from '../../../../src/vfs/metadata/listing.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  // The feed tells one thing at a time: in between is where mistakes would show.
  remote.pageEntries = 1;
  remote.putFile(at('/Docs/a.txt'), 'a');
  remote.putFile(at('/Docs/b.txt'), 'b');
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

/** What the questions to the service are during `work`. */
async function questionsOf(work: () => Promise<unknown>): Promise<string[]> {
  const before = remote.calls.length;
  await work();
  return remote.calls
    .slice(before)
    .filter(({ call }) => !['awaitChange', 'changesSince', 'latestCursor'].includes(call))
    .map(({ call, path }) => `${call} ${path}`);
}

/** Lets the feed tell all that has happened. */
async function feedTold(): Promise<void> {
  remote.releaseFeed();
  await turn(50);
}

describe('what is known is not asked for', () => {
  test('a listing answers for all names in it, there or not', async () => {
    expect(await questionsOf(() => drive.files.list(at('/docs')))).toEqual(['stat /docs', 'list /docs']);
    const warm = async () => {
      expect(await drive.names(at('/docs'))).toEqual(['a.txt', 'b.txt']);
      expect(await drive.files.stat(at('/DOCS/A.txt'))).toMatchObject({ path: '/Docs/a.txt', kind: 'file' });
      expect(await drive.files.stat(at('/Docs/none'))).toBeUndefined();
      expect(await drive.files.stat(at('/Docs/a.txt/below'))).toBeUndefined();
      expect(await drive.files.stat(at('/Docs/none/below/that'))).toBeUndefined();
    };
    expect(await questionsOf(warm)).toEqual([]);
  });

  test('a name that was asked for in vain is not asked for again', async () => {
    expect(await questionsOf(() => drive.files.stat(at('/Docs/none')))).toEqual([
      'stat /Docs',
      'stat /Docs/none',
    ]);
    expect(await questionsOf(() => drive.files.stat(at('/docs/NONE')))).toEqual([]);
  });

  test('of a folder whose names are asked for one by one everything is learnt at once', async () => {
    await drive.files.stat(at('/Docs/one'));
    await drive.files.stat(at('/Docs/two'));
    const third = await questionsOf(() => drive.files.stat(at('/Docs/three')));
    expect(third).toEqual(['list /Docs', 'stat /Docs/three']);
    await turn(10);
    expect(await questionsOf(() => drive.files.stat(at('/Docs/four')))).toEqual([]);
  });

  test('who asks for the same at the same time shares one answer', async () => {
    const both = () => Promise.all([drive.files.list(ROOT), drive.files.list(ROOT), drive.files.list(ROOT)]);
    expect(await questionsOf(both)).toEqual(['list /']);
  });

  test('the root is not asked for', async () => {
    expect(await questionsOf(() => drive.files.stat(ROOT))).toEqual([]);
    expect((await drive.files.list(ROOT)).folder).toMatchObject({ kind: 'folder', path: '/', name: '' });
  });

  test('a listing is the same object until something changes, and another one then', async () => {
    const before = await drive.files.list(at('/Docs'));
    const root = await drive.files.list(ROOT);
    expect(await drive.files.list(at('/Docs'))).toBe(before);
    await drive.write(at('/Docs/a.txt'), 'other');
    const after = await drive.files.list(at('/Docs'));
    expect(after).not.toBe(before);
    expect(before.children.map(({ name }) => name)).toEqual(['a.txt', 'b.txt']);
    expect(await drive.files.list(at('/Docs'))).toBe(after);
    expect(await drive.files.list(ROOT)).toBe(root);
  });

  test('many changes of a large folder build no list of its children until one is asked for', async () => {
    await drive.files.list(at('/Docs'));
    const built = vi.spyOn(CachedFolder.prototype, 'entries');
    for (let index = 0; index < 50; index++) await drive.write(at(`/Docs/new ${index}`), `${index}`);
    expect(built).not.toHaveBeenCalled();
    expect((await drive.files.list(at('/Docs'))).children).toHaveLength(52);
    expect(built).toHaveBeenCalledTimes(1);
    built.mockRestore();
  });

  test('what is remembered stays within its bounds, and what was forgotten is asked for', async () => {
    await drive.close();
    drive = await MemoryDrive.open(remote, { metadataBytesMax: 20_000 });
    for (let index = 0; index < 100; index++) remote.putFile(at(`/f${index}/x`), 'x');
    await turn(10);
    for (let index = 0; index < 100; index++) expect(await drive.names(at(`/f${index}`))).toEqual(['x']);
    expect(drive.files.status().metadataBytes).toBeLessThanOrEqual(20_000);
    expect((await drive.files.list(ROOT)).children).toHaveLength(101);
  });
});

describe('a folder of which nothing is known', () => {
  test('is asked for at the same time as what is in it', async () => {
    const gate = remote.holdNext('stat', 'end');
    const listing = drive.files.list(at('/docs'));
    await gate.reached;
    await turn(20);
    expect(remote.count('list')).toBe(1);
    gate.release();
    expect((await listing).children.map(({ path }) => path)).toEqual(['/Docs/a.txt', '/Docs/b.txt']);
    expect([remote.count('stat'), remote.count('list')]).toEqual([1, 1]);
    expect(await questionsOf(() => drive.files.list(at('/Docs')))).toEqual([]);
  });

  test.each(['stat', 'list'] as const)('and is none, with %s answered last', async (late) => {
    for (const [path, fault] of [
      ['/none', 'not-found'],
      ['/Docs/a.txt', 'not-a-folder'],
    ] as const) {
      const gate = remote.holdNext(late, 'begin');
      const listing = drive.files.list(at(path)).catch((error: unknown) => error);
      await gate.reached;
      await turn(20);
      gate.release();
      expect(await listing).toMatchObject({ fault });
      await turn(20);
      expect(await questionsOf(() => drive.files.stat(at(path)))).toEqual([]);
    }
  });

  test('is known afterwards, also when the feed lost its place meanwhile', async () => {
    const gate = remote.holdNext('stat', 'end');
    const listing = drive.names(at('/docs'));
    await gate.reached;
    remote.failNext('awaitChange', 'reset');
    remote.putFile(at('/other'), '');
    await turn(50);
    gate.release();
    expect(await listing).toEqual(['a.txt', 'b.txt']);
    expect(await questionsOf(() => drive.files.stat(at('/docs')))).toEqual([]);
  });

  test('is listed again when that failed before it was known to be one', async () => {
    remote.failNext('list', 'offline');
    const gate = remote.holdNext('stat', 'end');
    const listing = drive.files.list(at('/docs'));
    await gate.reached;
    await turn(20);
    gate.release();
    expect((await listing).children).toHaveLength(2);
    expect(remote.count('list')).toBe(2);
  });

  test('shows what we write into it meanwhile, and not what we remove', async () => {
    const gate = remote.holdNext('list', 'end');
    const listing = drive.names(at('/docs'));
    await gate.reached;
    await drive.write(at('/docs/c.txt'), 'c');
    await drive.files.remove(at('/docs/a.txt'), { recoverable: true });
    gate.release();
    expect((await listing).sort()).toEqual(['b.txt', 'c.txt']);
    expect((await drive.names(at('/docs'))).sort()).toEqual(['b.txt', 'c.txt']);
  });

  test('removed meanwhile and made again is told as it is now', async () => {
    const gate = remote.holdNext('list', 'end');
    const listing = drive.names(at('/docs')).catch((error: unknown) => error);
    await gate.reached;
    await drive.files.remove(at('/docs'), { recoverable: true });
    await drive.files.createFolder(at('/docs'));
    gate.release();
    await listing;
    expect(await drive.names(at('/docs'))).toEqual([]);
  });
});

describe('nothing older than our own change is believed', () => {
  test('a listing that began before a write does not hide it, from whoever asks', async () => {
    const gate = remote.holdNext('list', 'end');
    const early = drive.files.list(at('/Docs'));
    await gate.reached;
    await drive.write(at('/Docs/c.txt'), 'c');
    const late = drive.files.list(at('/Docs'));
    gate.release();
    expect((await late).children.map(({ name }) => name)).toEqual(['a.txt', 'b.txt', 'c.txt']);
    await early;
    expect(await drive.names(at('/Docs'))).toEqual(['a.txt', 'b.txt', 'c.txt']);
  });

  test('nor show what was removed, or what a folder held that was removed and made again', async () => {
    const gate = remote.holdNext('list', 'end');
    const early = drive.files.list(at('/Docs'));
    await gate.reached;
    await drive.files.remove(at('/Docs'), { recoverable: true });
    expect(await drive.files.stat(at('/Docs'))).toBeUndefined();
    await drive.files.createFolder(at('/Docs'));
    const late = drive.files.list(at('/Docs'));
    gate.release();
    await early;
    expect((await late).children).toEqual([]);
    expect(await drive.names(at('/Docs'))).toEqual([]);
  });

  test('nor does an entry that was asked for before it was written', async () => {
    await drive.files.stat(at('/Docs'));
    const gate = remote.holdNext('stat', 'end');
    const early = drive.files.stat(at('/Docs/c.txt'));
    await gate.reached;
    const write = drive.write(at('/Docs/c.txt'), 'c');
    gate.release();
    const { entry } = await write;
    await early;
    expect(await drive.files.stat(at('/Docs/c.txt'))).toEqual(entry);
  });

  test('an answer that comes after a newer change from elsewhere does not hide it', async () => {
    await drive.files.stat(at('/Docs/none'));
    const gate = remote.holdNext('stat', 'end');
    const early = drive.files.stat(at('/Docs/a.txt'));
    await gate.reached;
    const newer = remote.putFile(at('/Docs/a.txt'), 'from elsewhere');
    await feedTold();
    gate.release();
    expect(await early).toEqual(newer);
    expect(await drive.files.stat(at('/Docs/a.txt'))).toEqual(newer);
  });

  test('a listing that is late does not hide what the feed told and we knew already', async () => {
    const gate = remote.holdNext('list', 'end');
    const early = drive.files.list(ROOT);
    await gate.reached;
    remote.holdFeed();
    remote.putFile(at('/New/x'), 'x');
    expect(await drive.files.stat(at('/New'))).toBeDefined();
    await feedTold();
    gate.release();
    await early;
    expect(await drive.names(ROOT)).toEqual(['Docs', 'New']);
  });

  test('the feed tells of a state before our write', async () => {
    await drive.files.list(at('/Docs'));
    remote.holdFeed();
    remote.putFile(at('/Docs/a.txt'), 'from elsewhere');
    const { entry } = await drive.write(at('/Docs/a.txt'), 'ours');
    remote.releaseFeed();
    for (let step = 0; step < 50; step++) {
      expect(await drive.files.stat(at('/Docs/a.txt'))).toEqual(entry);
      await turn();
    }
    expect(await drive.text(at('/Docs/a.txt'))).toBe('ours');
  });

  test('the feed tells of our own writes, one after the other, and no question is needed', async () => {
    await drive.files.list(at('/Docs'));
    remote.holdFeed();
    for (const text of ['1', '2', '3']) await drive.write(at('/Docs/a.txt'), text);
    const told = async () => {
      remote.releaseFeed();
      for (let step = 0; step < 50; step++) {
        expect(await drive.text(at('/Docs/a.txt'))).toBe('3');
        await turn();
      }
    };
    expect((await questionsOf(told)).filter((question) => !question.startsWith('download'))).toEqual([]);
  });

  test('the feed tells of what was before we removed, and before we made again', async () => {
    await drive.files.list(at('/Docs'));
    remote.holdFeed();
    remote.putFile(at('/Docs/a.txt'), 'from elsewhere');
    await drive.files.remove(at('/Docs/a.txt'), { recoverable: true });
    await drive.files.remove(at('/Docs/b.txt'), { recoverable: true });
    const { entry } = await drive.write(at('/Docs/b.txt'), 'again');
    remote.releaseFeed();
    for (let step = 0; step < 50; step++) {
      expect(await drive.files.stat(at('/Docs/a.txt'))).toBeUndefined();
      expect(await drive.files.stat(at('/Docs/b.txt'))).toEqual(entry);
      await turn();
    }
  });

  test('the feed tells of what was in a folder before we removed it and made it again', async () => {
    await drive.files.list(at('/Docs'));
    remote.holdFeed();
    remote.putFile(at('/Docs/new'), 'from elsewhere');
    await drive.files.remove(at('/Docs'), { recoverable: true });
    await drive.files.createFolder(at('/Docs'));
    remote.releaseFeed();
    for (let step = 0; step < 50; step++) {
      expect(await drive.names(at('/Docs'))).toEqual([]);
      await turn();
    }
  });

  test('the feed tells that a folder was removed, before we wrote into it', async () => {
    await drive.files.list(at('/Docs'));
    remote.holdFeed();
    remote.delete(at('/Docs'));
    const { entry } = await drive.write(at('/Docs/c.txt'), 'ours');
    remote.releaseFeed();
    for (let step = 0; step < 50; step++) {
      expect(await drive.files.stat(at('/Docs/c.txt'))).toMatchObject({ id: entry.id });
      await turn();
    }
    expect(await drive.names(at('/Docs'))).toEqual(['c.txt']);
  });

  test('a write that comes while another one of the same file waits for its answer is the later one', async () => {
    await drive.files.list(at('/Docs'));
    remote.holdFeed();
    const gate = remote.holdNext('upload', 'end');
    const first = drive.write(at('/Docs/a.txt'), 'first');
    await gate.reached;
    const second = drive.write(at('/Docs/a.txt'), 'second');
    gate.release();
    await Promise.all([first, second]);
    expect(await drive.text(at('/Docs/a.txt'))).toBe('second');
    await feedTold();
    expect(await drive.text(at('/Docs/a.txt'))).toBe('second');
  });

  test('a write from elsewhere between our commit and its answer', async () => {
    await drive.files.list(at('/Docs'));
    const gate = remote.holdNext('upload', 'end');
    const ours = drive.write(at('/Docs/a.txt'), 'ours');
    await gate.reached;
    const theirs = remote.putFile(at('/Docs/a.txt'), 'theirs');
    await feedTold();
    gate.release();
    await ours;
    expect(await drive.files.stat(at('/Docs/a.txt'))).toEqual(theirs);
  });

  test('a time that is being set for a revision while another one is written', async () => {
    await drive.files.list(at('/Docs'));
    const { times } = drive.state;
    const set = times.set.bind(times);
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = vi.spyOn(times, 'set').mockImplementation(async (...time) => {
      await released;
      await set(...time);
    });
    const setting = drive.files.setModified(at('/Docs/a.txt'), 1_000);
    await turn(5);
    const { entry } = await drive.write(at('/Docs/a.txt'), 'newer');
    release();
    await setting;
    slow.mockRestore();
    expect(await drive.files.stat(at('/Docs/a.txt'))).toEqual(entry);
  });

  test('a time that is set while a listing is on its way is in it', async () => {
    const gate = remote.holdNext('list', 'end');
    const listing = drive.files.list(at('/Docs'));
    await gate.reached;
    await drive.files.setModified(at('/Docs/a.txt'), 1_000);
    gate.release();
    await listing;
    expect((await drive.files.list(at('/Docs'))).children[0]).toMatchObject({ modifiedMs: 1_000 });
  });

  test('a file written into a folder while the folder is being removed', async () => {
    await drive.files.list(at('/Docs'));
    const gate = remote.holdNext('remove', 'end');
    const removing = drive.files.remove(at('/Docs'), { recoverable: true });
    await gate.reached;
    const { entry } = await drive.write(at('/Docs/late.txt'), 'late');
    gate.release();
    await removing;
    expect(await drive.files.stat(at('/Docs/late.txt'))).toMatchObject({ id: entry.id });
    expect(await drive.names(at('/Docs'))).toEqual(['late.txt']);
  });

  test('what became of a write whose answer was lost is asked for', async () => {
    await drive.files.list(at('/Docs'));
    remote.failNext('upload', 'offline', { late: true });
    await expect(drive.write(at('/Docs/a.txt'), 'sent')).rejects.toMatchObject({ fault: 'offline' });
    expect(await drive.text(at('/Docs/a.txt'))).toBe('sent');
  });
});

describe('changes made elsewhere', () => {
  test('are seen without a question', async () => {
    await drive.files.list(ROOT);
    await drive.files.list(at('/Docs'));
    const theirs = remote.putFile(at('/docs/c.txt'), 'c');
    remote.delete(at('/Docs/a.txt'));
    remote.putFolder(at('/New'));
    const look = async () => {
      await feedTold();
      expect(await drive.names(at('/Docs'))).toEqual(['b.txt', 'c.txt']);
      expect(await drive.files.stat(at('/Docs/c.txt'))).toEqual(theirs);
      expect(await drive.names(ROOT)).toEqual(['Docs', 'New']);
    };
    expect(await questionsOf(look)).toEqual([]);
  });

  test('a folder that was moved is found at its new place only', async () => {
    await drive.files.list(ROOT);
    await drive.files.list(at('/Docs'));
    remote.rename(at('/Docs'), at('/Texts'));
    await feedTold();
    expect(await drive.names(ROOT)).toEqual(['Texts']);
    expect(await drive.files.stat(at('/Docs/a.txt'))).toBeUndefined();
    expect(await drive.names(at('/Texts'))).toEqual(['a.txt', 'b.txt']);
  });

  test('a listing that shows a folder no more, before the feed does: nothing is in it', async () => {
    await drive.files.stat(at('/Docs/a.txt'));
    remote.holdFeed();
    remote.delete(at('/Docs'));
    expect(await drive.names(ROOT)).toEqual([]);
    expect(await drive.files.stat(at('/Docs/a.txt'))).toBeUndefined();
  });

  test('a folder shows when a name came or went', async () => {
    await drive.files.list(ROOT);
    await drive.files.list(at('/Docs'));
    await drive.clock.advance(1_000);
    await drive.write(at('/Docs/c.txt'), 'c');
    expect(await drive.files.stat(at('/Docs'))).toMatchObject({ modifiedMs: drive.clock.now() });
  });
});
