import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import { openDocs } from '../../../support/docs-drive.ts';
import { type MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await openDocs();
  ({ remote } = drive);
});

afterEach(() => drive.close());

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
    await drive.feedTold();
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
    await drive.feedTold();
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
    expect((await drive.questionsOf(told)).filter((question) => !question.startsWith('download'))).toEqual(
      [],
    );
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
    const gate = remote.holdNext('write', 'end');
    const first = drive.write(at('/Docs/a.txt'), 'first');
    await gate.reached;
    const second = drive.write(at('/Docs/a.txt'), 'second');
    gate.release();
    await Promise.all([first, second]);
    expect(await drive.text(at('/Docs/a.txt'))).toBe('second');
    await drive.feedTold();
    expect(await drive.text(at('/Docs/a.txt'))).toBe('second');
  });

  test('a write from elsewhere between our commit and its answer', async () => {
    await drive.files.list(at('/Docs'));
    const gate = remote.holdNext('write', 'end');
    const ours = drive.write(at('/Docs/a.txt'), 'ours');
    await gate.reached;
    const theirs = remote.putFile(at('/Docs/a.txt'), 'theirs');
    await drive.feedTold();
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

  test('a file written into a folder while the folder is being removed is refused and does not bring it back', async () => {
    await drive.files.list(at('/Docs'));
    const gate = remote.holdNext('remove', 'end');
    const removing = drive.files.remove(at('/Docs'), { recoverable: true });
    await gate.reached;
    const refused = expect(drive.write(at('/Docs/late.txt'), 'late')).rejects.toMatchObject({
      fault: 'parent-missing',
    });
    gate.release();
    await removing;
    await refused;
    expect(await drive.files.stat(at('/Docs'))).toBeUndefined();
  });

  test('what became of a write whose answer was lost is asked for', async () => {
    await drive.files.list(at('/Docs'));
    remote.failNext('write', 'offline', { late: true });
    await expect(drive.write(at('/Docs/a.txt'), 'sent')).rejects.toMatchObject({ fault: 'offline' });
    expect(await drive.text(at('/Docs/a.txt'))).toBe('sent');
  });
});
