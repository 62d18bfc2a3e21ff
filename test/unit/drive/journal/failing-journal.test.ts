import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { faultOf } from '../../../support/fault-of.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('a body that the disk cannot read', () => {
  const EIO = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });

  /** Makes the next `times` reads of a body fail. */
  function failReads(times = Number.POSITIVE_INFINITY): void {
    const { journal } = drive;
    const read = journal.read.bind(journal);
    let failures = 0;
    vi.spyOn(journal, 'read').mockImplementation(async function* (...wanted) {
      if (failures++ < times) throw EIO;
      yield* read(...wanted);
    });
  }

  test.each([100, 100_000])(
    'a write of %i bytes goes to the lost-and-found folder after ten tries, and no longer holds up a move of its folder',
    async (sizeBytes) => {
      remote.putFolder(at('/f'));
      await drive.feedTold();
      failReads();
      const text = 'x'.repeat(sizeBytes);
      await drive.put(at('/f/a'), text);
      await drive.clock.during(drive.untilLanded());
      expect(drive.warnings).toHaveLength(9);
      expect(drive.lost()).toEqual([{ text, reason: expect.stringContaining('EIO: i/o error, read') }]);
      await drive.files.move(at('/f'), at('/g'), { overwrite: false });
      expect(remote.paths).toEqual(['/g']);
    },
  );

  test('a write lands when the disk reads its body again', async () => {
    failReads(5);
    await drive.put(at('/a'), 'text');
    await drive.clock.during(drive.untilLanded());
    expect([remote.text(at('/a')), drive.lost()]).toEqual(['text', []]);
  });

  test('GET of a pending file fails with broken', async () => {
    remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'text');
    failReads();
    expect(await faultOf(drive.text(at('/a')))).toBe('broken');
  });
});

describe('a journal that fails after it has removed a write', () => {
  function failAfterForget(): void {
    const { journal } = drive;
    const forget = journal.forget.bind(journal);
    vi.spyOn(journal, 'forget').mockImplementationOnce(async (...forgotten) => {
      await forget(...forgotten);
      throw new Error('the disk fails');
    });
  }

  async function ended(): Promise<void> {
    await drive.clock.during(drive.untilLanded());
    expect([drive.lost(), await drive.pendingIds()]).toEqual([[], []]);
  }

  test('a write that a deletion has removed ends, and does not hide that its file is gone', async () => {
    remote.failNext('write', 'insufficient-space');
    await drive.put(at('/a'), 'text');
    while (drive.warnings.length === 0) await turn();
    failAfterForget();
    await expect(drive.files.remove(at('/a'), { recoverable: false })).rejects.toThrow('the disk fails');
    await ended();
    expect([await drive.files.stat(at('/a')), remote.paths]).toEqual([undefined, []]);
  });

  test('a write that has become a conflicted copy ends, and does not hide the other file', async () => {
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'ours');
    await gate.reached;
    remote.putFile(at('/a'), 'theirs');
    failAfterForget();
    gate.release();
    await ended();
    expect(await drive.text(at('/a'))).toBe('theirs');
    expect(remote.paths.map((path) => remote.text(at(path)))).toEqual(['theirs', 'ours']);
  });

  test('a write that has landed ends', async () => {
    failAfterForget();
    await drive.put(at('/a'), 'text');
    await ended();
    expect(await drive.text(at('/a'))).toBe('text');
  });
});
