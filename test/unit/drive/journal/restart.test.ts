import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDrive, seen, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('restarts', () => {
  async function restart(): Promise<void> {
    drive.kill();
    remote.forgetGates();
    await drive.start();
  }

  test('all acknowledged writes are visible after a kill, and land', async () => {
    remote.putFile(at('/replaced'), 'old');
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/first'), 'x');
    await gate.reached;
    const text = 'y'.repeat(100_000);
    const written = await drive.put(at('/large'), text);
    await drive.put(at('/replaced'), 'new');
    await drive.put(at('/empty'), '');
    await restart();
    expect(seen(await drive.fileAt(at('/large')))).toEqual(seen(written));
    await drive.untilLanded();
    expect(remote.paths).toEqual(['/empty', '/first', '/large', '/replaced']);
    expect(remote.text(at('/large'))).toBe(text);
    expect(remote.text(at('/replaced'))).toBe('new');
  });

  test.each(['new', 'replaced'])(
    'a kill between a commit and its removal from the journal leaves one file (%s)',
    async (what) => {
      if (what === 'replaced') remote.putFile(at('/a'), 'old');
      const gate = remote.holdNext('write', 'end');
      const { id } = await drive.put(at('/a'), 'text');
      await drive.state.properties.change(id, [{ set: { namespace: 'n', name: 'p', xml: '<p/>' } }]);
      await gate.reached;
      await drive.put(at('/a'), 'next');
      await restart();
      await drive.untilLanded();
      expect([remote.paths, remote.text(at('/a'))]).toEqual([['/a'], 'next']);
      const now = await drive.fileAt(at('/a'));
      expect((await drive.state.properties.of([now.id])).get(now.id)).toHaveLength(1);
    },
  );

  test('a drive that closes sends its pending writes', async () => {
    await drive.put(at('/a'), '');
    await drive.put(at('/b'), 'text');
    await drive.end();
    expect(remote.paths).toEqual(['/a', '/b']);
    await drive.start();
  });

  test('a drive that closes while the service is away keeps the pending writes for the next start', async () => {
    for (let count = 0; count < 3; count++) remote.failNext('write', 'offline');
    await drive.put(at('/a'), 'text');
    while (drive.warnings.length === 0) await turn();
    await drive.end();
    expect(remote.paths).toEqual([]);
    await drive.start();
    expect(await drive.text(at('/a'))).toBe('text');
    await drive.clock.during(drive.untilLanded());
    expect(remote.text(at('/a'))).toBe('text');
  });

  test('a drive that closes does not wait for a service that hangs', async () => {
    const gate = remote.holdNext('write', 'begin');
    await drive.put(at('/a'), 'text');
    await gate.reached;
    await drive.clock.during(drive.end());
    remote.forgetGates();
    await drive.start();
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('text');
  });
});
