import { afterEach, beforeEach, describe, expect, test } from 'vitest';
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

describe('a listing of an uncached folder', () => {
  test('a listing of an uncached folder sends its stat and its list call at the same time', async () => {
    const gate = remote.holdNext('stat', 'end');
    const listing = drive.files.list(at('/docs'));
    await gate.reached;
    await turn(20);
    expect(remote.count('list')).toBe(1);
    gate.release();
    expect((await listing).children.map(({ path }) => path)).toEqual(['/Docs/a.txt', '/Docs/b.txt']);
    expect([remote.count('stat'), remote.count('list')]).toEqual([1, 1]);
    expect(await drive.questionsOf(() => drive.files.list(at('/Docs')))).toEqual([]);
  });

  test.each(['stat', 'list'] as const)(
    'a listing of a missing folder or of a file fails with the right fault when %s answers last, and is cached',
    async (late) => {
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
        expect(await drive.questionsOf(() => drive.files.stat(at(path)))).toEqual([]);
      }
    },
  );

  test('a listing during which the change feed resets succeeds, and the folder is cached', async () => {
    const gate = remote.holdNext('stat', 'end');
    const listing = drive.names(at('/docs'));
    await gate.reached;
    remote.failNext('awaitChange', 'reset');
    remote.putFile(at('/other'), '');
    await turn(50);
    gate.release();
    expect(await listing).toEqual(['a.txt', 'b.txt']);
    expect(await drive.questionsOf(() => drive.files.stat(at('/docs')))).toEqual([]);
  });

  test('a listing whose list call failed before the stat answered is fetched again', async () => {
    remote.failNext('list', 'offline');
    const gate = remote.holdNext('stat', 'end');
    const listing = drive.files.list(at('/docs'));
    await gate.reached;
    await turn(20);
    gate.release();
    expect((await listing).children).toHaveLength(2);
    expect(remote.count('list')).toBe(2);
  });

  test('a listing in flight shows files we write meanwhile and none that we remove', async () => {
    const gate = remote.holdNext('list', 'end');
    const listing = drive.names(at('/docs'));
    await gate.reached;
    await drive.write(at('/docs/c.txt'), 'c');
    await drive.files.remove(at('/docs/a.txt'), { recoverable: true });
    gate.release();
    expect((await listing).sort()).toEqual(['b.txt', 'c.txt']);
    expect((await drive.names(at('/docs'))).sort()).toEqual(['b.txt', 'c.txt']);
  });

  test('a folder removed and made again during its first listing is then listed as empty', async () => {
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
