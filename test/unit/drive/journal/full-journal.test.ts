import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Written } from '../../../../src/drive/files.ts';
import type { Spool } from '../../../../src/drive/spool/spool.ts';
import { SpoolBudget, SpoolFile } from '../../../../src/drive/spool/spool-file.ts';
import { SpooledBody } from '../../../../src/drive/spool/spooled-body.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { faultOf } from '../../../support/fault-of.ts';
import { bodyOf, MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('a full journal', () => {
  beforeEach(async () => {
    await drive.close();
    const journalLimits = { filesMax: 3, bytesMax: 100 };
    drive = await MemoryDrive.open(remote, { writeBack: true, journalLimits });
  });

  test('a write that does not fit into the journal is acknowledged once the service has it', async () => {
    const small = remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'x'.repeat(80));
    await small.reached;
    const gate = remote.holdNext('write', 'begin');
    let isAcknowledged = false;
    const large = drive.put(at('/b'), 'y'.repeat(80)).then(() => {
      isAcknowledged = true;
    });
    await gate.reached;
    await turn(20);
    expect([isAcknowledged, await drive.files.stat(at('/b'))]).toEqual([false, undefined]);
    gate.release();
    await large;
    expect(remote.text(at('/b'))).toBe('y'.repeat(80));
    small.release();
    await drive.untilLanded();
  });

  test('a write that does not fit replaces a pending one, under its condition', async () => {
    const { rev } = await drive.put(at('/a'), 'x');
    expect(await faultOf(drive.put(at('/a'), 'y'.repeat(200), { if: 'rev', rev: 'other' }))).toBe('changed');
    await drive.put(at('/a'), 'y'.repeat(200), { if: 'rev', rev });
    expect(remote.text(at('/a'))).toBe('y'.repeat(200));
    expect(await faultOf(drive.put(at('/a'), 'z'.repeat(200), { if: 'rev', rev }))).toBe('changed');
  });

  describe('while a body that does not fit comes slowly', () => {
    let begun: Promise<void>;
    let finish: () => void;
    let large: Promise<Written>;
    let leave: AbortController;

    beforeEach(async () => {
      await drive.files.createFolder(at('/f'));
      let begin = (): void => undefined;
      begun = new Promise((resolve) => {
        begin = resolve;
      });
      const rest = new Promise<void>((resolve) => {
        finish = resolve;
      });
      async function* slow() {
        yield Buffer.alloc(100, 'x');
        begin();
        await rest;
        yield Buffer.alloc(100, 'x');
      }
      leave = new AbortController();
      const options = { mode: { if: 'any' }, sizeBytes: 200 } as const;
      large = drive.files.write(at('/f/large'), slow(), options, leave.signal);
      await begun;
    });

    test('while a large body is received slowly, other writes are acknowledged, and the body that was complete last stays', async () => {
      await drive.put(at('/f/sibling'), 's');
      await drive.put(at('/f/large'), 'small');
      expect(await drive.text(at('/f/large'))).toBe('small');
      finish();
      await large;
      await drive.untilLanded();
      expect(remote.text(at('/f/large'))).toBe('x'.repeat(200));
      expect(remote.text(at('/f/sibling'))).toBe('s');
      expect(remote.paths.filter((path) => path.includes('conflicted copy'))).toEqual([]);
    });

    test('while a large body is received slowly, its folder can be moved, and the write is refused', async () => {
      await drive.files.move(at('/f'), at('/g'), { overwrite: false });
      finish();
      expect(await faultOf(large)).toBe('parent-missing');
      expect(remote.paths).toEqual(['/g']);
    });

    test('a client that leaves while its large write waits for its turn frees the path', async () => {
      const gate = remote.holdNext('write', 'begin');
      await drive.put(at('/f/large'), 'small');
      await gate.reached;
      finish();
      await turn(20);
      leave.abort(new Error('left'));
      await expect(large).rejects.toThrow('left');
      gate.release();
      await drive.put(at('/f/large'), 'after');
      await drive.untilLanded();
      expect(remote.text(at('/f/large'))).toBe('after');
    });
  });

  test('only a body that fits neither into the journal nor into the buffers of a connection is spooled', async () => {
    let spooled = 0;
    const spool: Spool = {
      attach(body) {
        spooled++;
        const world = { clock: drive.clock, log: silentLog };
        return new SpooledBody(body, new SpoolFile('/nonexistent', new SpoolBudget(0)), world);
      },
    };
    await drive.end();
    drive.use({ spool });
    await drive.start();
    const bodies = { '/small': 'x', '/buffered': 'y'.repeat(65_536), '/large': 'z'.repeat(65_537) };
    for (const [path, body] of Object.entries(bodies)) {
      expect(spooled).toBe(0);
      await drive.put(at(path), body);
    }
    expect(spooled).toBe(1);
    await drive.untilLanded();
    for (const [path, body] of Object.entries(bodies)) expect(remote.text(at(path))).toBe(body);
  });

  test('a body of unknown length that does not fit into the journal is refused', async () => {
    const body = bodyOf('x'.repeat(60), 'y'.repeat(60));
    expect(await faultOf(drive.files.write(at('/a'), body, { mode: { if: 'any' } }))).toBe('no-space');
    expect(await drive.files.stat(at('/a'))).toBeUndefined();
    expect(drive.files.depth().files).toBe(0);
  });
});

test('a journal that takes no more writes sends those that are left in it', async () => {
  for (let count = 0; count < 3; count++) remote.failNext('write', 'offline');
  await drive.put(at('/a'), 'left');
  while (drive.warnings.length === 0) await turn();
  await drive.end();
  drive.use({ journalLimits: { filesMax: 0 } });
  await drive.start();
  expect(await drive.text(at('/a'))).toBe('left');
  await drive.clock.during(drive.untilLanded());
  await drive.put(at('/b'), 'through');
  expect([remote.text(at('/a')), remote.text(at('/b'))]).toEqual(['left', 'through']);
});
