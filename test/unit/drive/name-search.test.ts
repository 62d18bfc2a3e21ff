import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../../src/util/path.ts';
import { faultOf } from '../../support/fault-of.ts';
import { MemoryDrive, seen } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

async function open(writeBack: boolean): Promise<void> {
  remote = new MemoryRemote();
  remote.putFile(at('/a/Plan.txt'), 'a');
  remote.putFolder(at('/Plans'));
  drive = await MemoryDrive.open(remote, { writeBack });
}

const found = async (query: string) =>
  (await drive.files.search(query, undefined)).entries.map(({ path }) => path).sort();

afterEach(() => drive.close());

describe('the search of a drive', () => {
  beforeEach(() => open(false));

  test('files and folders are found at any depth, page after page', async () => {
    remote.pageEntries = 1;
    const first = await drive.files.search('plan', undefined);
    const second = await drive.files.search('plan', first.cursor);
    expect([...first.entries, ...second.entries].map(({ path }) => path).sort()).toEqual([
      '/Plans',
      '/a/Plan.txt',
    ]);
    expect([first.cursor === undefined, second.cursor]).toEqual([false, undefined]);
  });

  test('names that listings hide are not found', async () => {
    remote.putFile(at('/._Plan'), 'x');
    remote.putFile(at('/.Trashes/Plan'), 'x');
    remote.putFile(at('/.davgate-waiting-1/Plan'), 'x');
    expect(await found('plan')).toEqual(['/Plans', '/a/Plan.txt']);
  });

  test('a file that davgate has removed is not found, although the index of the service still has it', async () => {
    const stale = await remote.search('plan.txt', undefined);
    remote.search = async () => stale;
    expect(await found('plan.txt')).toEqual(['/a/Plan.txt']);
    await drive.files.remove(at('/a/Plan.txt'), { recoverable: true });
    expect(await found('plan.txt')).toEqual([]);
  });

  test('a file is found with the revision and the time that davgate has given it', async () => {
    const stale = await remote.search('plan.txt', undefined);
    remote.search = async () => stale;
    await drive.put(at('/a/Plan.txt'), 'newer');
    await drive.files.setModified(at('/a/Plan.txt'), 1_000_000);
    const { entries } = await drive.files.search('plan.txt', undefined);
    expect(entries).toEqual([await drive.fileAt(at('/a/Plan.txt'))]);
    expect(entries[0]?.modifiedMs).toBe(1_000_000);
  });

  test('a search while the service is away fails with `offline`', async () => {
    remote.failNext('search', 'offline');
    expect(await faultOf(drive.files.search('plan', undefined))).toBe('offline');
  });
});

describe('the search of a drive with a journal', () => {
  beforeEach(() => open(true));

  test('a pending file is found once, and with the same revision before and after it lands', async () => {
    const gate = remote.holdNext('write', 'begin');
    const written = await drive.put(at('/New plan.txt'), 'pending');
    const search = () => drive.files.search('new plan', undefined);
    expect((await search()).entries).toEqual([written]);
    expect(await found('plan')).toEqual(['/New plan.txt', '/Plans', '/a/Plan.txt']);
    gate.release();
    await drive.untilLanded();
    const [landed] = (await search()).entries;
    expect(landed?.kind === 'file' && seen(landed)).toEqual(seen(written));
  });

  test('a file that is being overwritten is found as it was written', async () => {
    await drive.files.list(ROOT);
    const gate = remote.holdNext('write', 'begin');
    const written = await drive.put(at('/a/Plan.txt'), 'overwritten');
    expect((await drive.files.search('plan.txt', undefined)).entries).toEqual([written]);
    gate.release();
  });
});
