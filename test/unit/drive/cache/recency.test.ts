import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FeedChange, Page } from '../../../../src/api/remote.ts';
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

describe('answers older than our own changes', () => {
  test('a listing that began before a write does not hide the file, from the client that asked or the next one', async () => {
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

  test('a listing that began before a folder was removed and made again shows none of its old children', async () => {
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

  test('a stat that began before a file was written does not hide the file', async () => {
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

  test('a stat answer that arrives after a newer change from elsewhere does not hide the change', async () => {
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

  test.each([
    ['made', 'new.txt'],
    ['replaced', 'a.txt'],
  ])('a late listing does not hide a file that was %s elsewhere and looked up meanwhile', async (_, name) => {
    remote.holdFeed();
    const gate = remote.holdNext('list', 'end');
    const early = drive.files.list(at('/Docs'));
    await gate.reached;
    const theirs = remote.putFile(at(`/Docs/${name}`), 'from elsewhere');
    expect(await drive.files.stat(at(`/Docs/${name}`))).toEqual(theirs);
    gate.release();
    expect((await early).children).toContainEqual(theirs);
    expect(await drive.files.stat(at(`/Docs/${name}`))).toEqual(theirs);
  });

  test('a listing costs no further lookup when it says the same as one meanwhile', async () => {
    const gate = remote.holdNext('list', 'end');
    const early = drive.files.list(at('/Docs'));
    await gate.reached;
    await drive.files.stat(at('/Docs/a.txt'));
    const before = remote.count('stat');
    gate.release();
    await early;
    expect(remote.count('stat')).toBe(before);
  });

  test('a late listing does not hide a folder that the change feed has confirmed meanwhile', async () => {
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

  test('the change feed reporting a state before our write does not hide the write', async () => {
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

  test('the change feed reporting our own writes one after the other causes no metadata call and hides none of them', async () => {
    await drive.files.list(at('/Docs'));
    remote.holdFeed();
    for (const text of ['1', '2', '3']) await drive.write(at('/Docs/a.txt'), text);
    const readAfterRelease = async () => {
      remote.releaseFeed();
      for (let step = 0; step < 50; step++) {
        expect(await drive.text(at('/Docs/a.txt'))).toBe('3');
        await turn();
      }
    };
    expect(
      (await drive.questionsOf(readAfterRelease)).filter((question) => !question.startsWith('download')),
    ).toEqual([]);
  });

  test('the change feed reporting states before our removals does not bring the files back or hide a new one', async () => {
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

  test('the change feed reporting a file in a folder we have removed and made again does not show the file', async () => {
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

  test('the change feed reporting the removal of a folder does not hide a file we wrote into it afterwards', async () => {
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

  test('of two concurrent writes of a file, the one that came second is the final content', async () => {
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

  test('a write from elsewhere between our commit and its answer is what a stat shows', async () => {
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

  test.each([
    ['a deletion of its folder', () => remote.delete(at('/Docs'))],
    [
      'a change that the feed does not name',
      () => {
        const read = remote.changesSince.bind(remote);
        vi.spyOn(remote, 'changesSince').mockImplementation(async (...how): Promise<Page<FeedChange>> => {
          const page = await read(...how);
          return { ...page, changes: page.changes.map(() => ({ kind: 'unknown-below', path: at('/Docs') })) };
        });
        remote.delete(at('/Docs/c.txt'));
      },
    ],
    [
      'a deletion that the feed has lost',
      () => {
        remote.failNext('changesSince', 'reset');
        remote.delete(at('/Docs/c.txt'));
      },
    ],
  ])('a file that is written is not shown after %s between the commit and its answer', async (_, change) => {
    await drive.files.list(at('/Docs'));
    const gate = remote.holdNext('write', 'end');
    const ours = drive.write(at('/Docs/c.txt'), 'ours');
    await gate.reached;
    change();
    await drive.feedTold();
    gate.release();
    await ours;
    expect(await drive.files.stat(at('/Docs/c.txt'))).toBeUndefined();
  });

  test('a modification time set for an old revision does not change a newer one that is written meanwhile', async () => {
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

  test('a modification time set while a listing is in flight is shown by the next listing', async () => {
    const gate = remote.holdNext('list', 'end');
    const listing = drive.files.list(at('/Docs'));
    await gate.reached;
    await drive.files.setModified(at('/Docs/a.txt'), 1_000);
    gate.release();
    await listing;
    expect((await drive.files.list(at('/Docs'))).children[0]).toMatchObject({ modifiedMs: 1_000 });
  });

  test('a file written into a folder that is being removed is refused with parent-missing and does not bring the folder back', async () => {
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

  test('a read after a write whose answer was lost returns the written content', async () => {
    await drive.files.list(at('/Docs'));
    remote.failNext('write', 'offline', { late: true });
    await expect(drive.write(at('/Docs/a.txt'), 'sent')).rejects.toMatchObject({ fault: 'offline' });
    expect(await drive.text(at('/Docs/a.txt'))).toBe('sent');
  });
});
