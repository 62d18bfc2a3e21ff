import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Path } from '../../../../src/util/path.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('conflicts with changes made elsewhere', () => {
  /** Writes `text` and runs `meanwhile` at the service before the write is sent. */
  async function conflict(path: Path, text: string, meanwhile: () => void): Promise<void> {
    const gate = remote.holdNext('write', 'begin');
    await drive.put(path, text);
    await gate.reached;
    meanwhile();
    gate.release();
    await drive.untilLanded();
  }

  const copies = () => remote.paths.filter((path) => path.includes('conflicted copy')) as Path[];

  test('a pending new file and a file of the same name made elsewhere are both kept', async () => {
    await conflict(at('/report.final.odt'), 'ours', () => remote.putFile(at('/report.final.odt'), 'theirs'));
    expect(remote.text(at('/report.final.odt'))).toBe('theirs');
    expect(copies()).toEqual(['/report.final (conflicted copy 2026-01-01 00.00.00).odt']);
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
    expect(await drive.text(at('/report.final.odt'))).toBe('theirs');
  });

  test('a pending write and a version written elsewhere are both kept, and the next write replaces the other version', async () => {
    await drive.put(at('/a'), 'base');
    await drive.untilLanded();
    await conflict(at('/a'), 'ours', () => remote.putFile(at('/a'), 'theirs'));
    expect(remote.text(at('/a'))).toBe('theirs');
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
    await drive.put(at('/a'), 'next');
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('next');
  });

  test('a pending write and the same content written elsewhere are one file', async () => {
    await conflict(at('/a'), 'same', () => remote.putFile(at('/a'), 'same'));
    expect(remote.paths).toEqual(['/a']);
  });

  test('a pending file and a folder of the same name made elsewhere are both kept', async () => {
    await conflict(at('/a'), 'ours', () => remote.putFolder(at('/a')));
    expect(remote.entryAt(at('/a'))?.kind).toBe('folder');
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
  });

  test('a pending edit survives a deletion elsewhere', async () => {
    await drive.put(at('/a'), 'base');
    await drive.untilLanded();
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'edit');
    await gate.reached;
    remote.delete(at('/a'));
    gate.release();
    await drive.clock.during(drive.untilLanded());
    expect(remote.text(at('/a'))).toBe('edit');
  });

  describe('changes to the folder of a pending write', () => {
    /** Prepares `/f` with an old file, and two pending writes in it. */
    beforeEach(async () => {
      remote.putFolder(at('/f'));
      remote.putFile(at('/f/old'), 'v1');
      await drive.feedTold();
      // An outage would not do: it ends with the next answered call.
      remote.failNext('write', 'insufficient-space');
      await drive.put(at('/first'), 'x');
      while (drive.warnings.length === 0) await turn();
      await drive.put(at('/f/old'), 'v2');
      await drive.put(at('/f/new'), 'precious');
    });

    async function landed(): Promise<void> {
      await drive.clock.during(drive.untilLanded());
      expect(drive.lost()).toEqual([]);
      expect(drive.files.depth()).toEqual({ files: 0, bytes: 0, lostFiles: 0 });
    }

    test('pending writes follow a folder that was renamed elsewhere', async () => {
      remote.putFolder(at('/to'));
      remote.rename(at('/f'), at('/to/g'));
      await drive.feedTold();
      await landed();
      expect(remote.paths).toEqual(['/first', '/to', '/to/g', '/to/g/new', '/to/g/old']);
      expect([remote.text(at('/to/g/old')), remote.text(at('/to/g/new'))]).toEqual(['v2', 'precious']);
      expect(await drive.text(at('/to/g/new'))).toBe('precious');
    });

    test('pending writes follow a renamed folder after a kill too', async () => {
      remote.rename(at('/f'), at('/g'));
      await drive.feedTold();
      drive.kill();
      await drive.start();
      await landed();
      expect([remote.text(at('/g/old')), remote.text(at('/g/new'))]).toEqual(['v2', 'precious']);
    });

    test('a folder that was deleted elsewhere is made again for its pending writes', async () => {
      remote.delete(at('/f'));
      await drive.feedTold();
      await landed();
      expect(remote.paths).toEqual(['/f', '/f/new', '/f/old', '/first']);
      expect([remote.text(at('/f/old')), remote.text(at('/f/new'))]).toEqual(['v2', 'precious']);
    });

    test('a folder that was moved out of the root is made again for its pending writes', async () => {
      remote.moveOut(at('/f'));
      await drive.feedTold();
      await landed();
      expect(remote.paths).toEqual(['/f', '/f/new', '/f/old', '/first']);
      expect([remote.text(at('/f/old')), remote.text(at('/f/new'))]).toEqual(['v2', 'precious']);
    });

    test('a pending write keeps its properties when its folder was moved out of the root', async () => {
      const shownAs = (await drive.fileAt(at('/f/old'))).id;
      const property = { namespace: 'n', name: 'p', xml: '<p/>' };
      await drive.state.properties.change(shownAs, [{ set: property }]);
      remote.moveOut(at('/f'));
      await drive.feedTold();
      await landed();
      const landedAs = (await drive.fileAt(at('/f/old'))).id;
      expect(landedAs).not.toBe(shownAs);
      // The file outside the root keeps its properties, because it may be moved back.
      const kept = await drive.state.properties.of([shownAs, landedAs]);
      expect([kept.get(shownAs), kept.get(landedAs)]).toEqual([[property], [property]]);
    });

    test('pending writes become conflicted copies in the folder above when a file took the place of their folder', async () => {
      remote.delete(at('/f'));
      remote.putFile(at('/f'), 'a file now');
      await drive.feedTold();
      await landed();
      const copies = remote.paths.filter((path) => path.includes('conflicted copy'));
      expect(copies.map((path) => remote.text(at(path))).sort()).toEqual(['precious', 'v2']);
      expect(remote.text(at('/f'))).toBe('a file now');
    });
  });
});
