import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('a failing service', () => {
  test('a failed write is sent again with others when the service is back', async () => {
    await drive.files.list(at('/'));
    remote.goAway('unavailable');
    await drive.put(at('/a'), 'x');
    while (drive.warnings.length === 0) await turn();
    await drive.put(at('/b'), 'y');
    await turn(20);
    expect(remote.paths).toEqual([]);
    expect(await drive.text(at('/b'))).toBe('y');
    remote.back();
    await drive.clock.during(drive.untilLanded());
    expect(remote.paths).toEqual(['/a', '/b']);
  });

  test('a write to a full account waits until there is room', async () => {
    remote.failNext('write', 'insufficient-space');
    await drive.put(at('/a'), 'x');
    while (drive.warnings.length === 0) await turn();
    expect(drive.files.depth()).toEqual({ files: 1, bytes: 1, lostFiles: 0, trouble: 'no-space' });
    await drive.clock.advance(1_000);
    await drive.untilLanded();
    expect(remote.paths).toEqual(['/a']);
  });

  test.each([
    ['foreign', 'intercepted'],
    ['not-allowed', 'not-entitled'],
    ['unauthorized', 'unauthorized'],
  ] as const)(
    'a write that fails with %s waits, is reported as hindered by %s, and lands when the failure ends',
    async (failure, trouble) => {
      for (let count = 0; count < 30; count++) remote.failNext('write', failure);
      await drive.put(at('/a'), 'precious');
      while (drive.warnings.length === 0) await turn();
      expect(drive.files.depth()).toEqual({ files: 1, bytes: 8, lostFiles: 0, trouble });
      expect(await drive.text(at('/a'))).toBe('precious');
      await drive.clock.during(drive.untilLanded());
      expect(remote.text(at('/a'))).toBe('precious');
      expect(drive.files.depth()).toEqual({ files: 0, bytes: 0, lostFiles: 0 });
      // Half an hour of tries, and one line every ten minutes.
      const lines = drive.warnings.filter((event) => event.includes('takes no writes'));
      expect(lines.length).toBeLessThan(5);
    },
  );

  test('a single write that a proxy blocks does not hold up the others', async () => {
    // Each try is two calls: after a failed batch the write is sent once more alone.
    for (let count = 0; count < 8; count++) remote.failNext('write', 'foreign');
    await drive.put(at('/blocked'), 'x');
    while (drive.warnings.length === 0) await turn();
    const names = Array.from({ length: 20 }, (_, index) => at(`/${index}`));
    await Promise.all(names.map((name) => drive.put(name, 'y')));
    await drive.clock.during(drive.untilLanded());
    expect(remote.paths).toHaveLength(21);
    expect(drive.lost()).toEqual([]);
  });

  test.each(['no-permission', 'too-large'] as const)(
    'a write that is refused for good (%s) goes to the lost-and-found folder',
    async (failure) => {
      remote.failNext('write', failure);
      await drive.put(at('/a'), 'precious');
      await drive.untilLanded();
      expect(drive.lost().map(({ text }) => text)).toEqual(['precious']);
      expect(drive.files.depth()).toEqual({ files: 0, bytes: 0, lostFiles: 1 });
      expect(await drive.files.stat(at('/a'))).toBeUndefined();
    },
  );

  test('a write that fails ten times with a senseless answer goes to the lost-and-found folder', async () => {
    for (let count = 0; count < 10; count++) remote.failNext('write', 'hash-mismatch');
    await drive.put(at('/a'), 'precious');
    await drive.clock.during(drive.untilLanded());
    expect(drive.lost().map(({ text }) => text)).toEqual(['precious']);
    expect(drive.warnings).toHaveLength(9);
  });

  test('a senseless answer after nine failures of another kind does not end a write', async () => {
    for (let count = 0; count < 9; count++) remote.failNext('write', new Error('the journal cannot be read'));
    remote.failNext('write', 'session-gone');
    await drive.put(at('/a'), 'precious');
    await drive.clock.during(drive.untilLanded());
    expect(drive.lost()).toEqual([]);
    expect(remote.text(at('/a'))).toBe('precious');
  });
});
