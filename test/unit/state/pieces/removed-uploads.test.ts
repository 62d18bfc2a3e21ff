import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { PieceStore } from '../../../../src/state/pieces/piece-store.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

/** How long the disk takes for a rename that begins now, in ms. */
let renameMs = 0;

vi.mock('node:fs/promises', async (load) => {
  const real = await load<typeof import('node:fs/promises')>();
  const rename: typeof real.rename = async (from, to) => {
    if (renameMs > 0) await new Promise((resolve) => setTimeout(resolve, renameMs));
    return real.rename(from, to);
  };
  return { ...real, rename };
});

async function* bodyOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

test('an upload that begins while the one before it is removed keeps its pieces', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-pieces-'));
  const store = await PieceStore.open({ directory, clock: new ManualClock(), log: silentLog });
  try {
    await store.create('ann', 'up');
    await store.add('ann', 'up', 'old', bodyOf('old'));
    renameMs = 200;
    const removed = store.remove('ann', 'up');
    renameMs = 0;
    await store.create('ann', 'up');
    await store.add('ann', 'up', 'new', bodyOf('new'));
    await removed;
    expect([...(store.upload('ann', 'up')?.pieces.keys() ?? [])]).toEqual(['new']);
    const onDisk = readdirSync(directory, { recursive: true, encoding: 'utf8' });
    expect(onDisk.filter((name) => /up\/./.test(name))).toEqual([expect.stringMatching(/up\/new$/)]);
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
});
