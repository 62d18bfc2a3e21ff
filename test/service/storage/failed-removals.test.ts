import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Disk, localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { BLOCK_BYTES } from '../../../src/util/content-hash.ts';
import { expectSound } from './invariants.ts';
import { body, commit, HOME, opened, put, refusal } from './opened.ts';

/** Returns a disk on which removals in `folder` fail while it is set. */
function stickyDisk(): Disk & { folder: string | undefined } {
  const disk = {
    ...localDisk,
    folder: undefined as string | undefined,
    remove: async (path: string) => {
      if (disk.folder && path.includes(`/${disk.folder}/`))
        throw Object.assign(new Error('EIO: injected'), { code: 'EIO' });
      await localDisk.remove(path);
    },
  };
  return disk;
}

/** Yields a block and a half, and then fails like a client that disconnects. */
async function* brokenOff(): AsyncGenerator<Uint8Array> {
  yield randomBytes(BLOCK_BYTES);
  yield randomBytes(BLOCK_BYTES / 2);
  throw new Error('the client has gone');
}

test.each(['incoming', 'blocks'])(
  'tidy clears away what an aborted upload left in %s when its removal failed',
  async (folder) => {
    const disk = stickyDisk();
    const storage = await opened({ disk });
    disk.folder = folder;
    const upload = storage.upload(HOME, commit('/a'), { bytes: brokenOff(), bytesMax: 2 ** 40 });
    expect(await refusal(upload)).toBe('the client has gone');
    disk.folder = undefined;
    await storage.tidy();
    expect(await readdir(join(storage.dataDirectory, 'blocks'))).toEqual([]);
    await storage.close();
    await (await opened({ dataDirectory: storage.dataDirectory })).close();
    expectSound(storage.dataDirectory);
  },
);

test('append succeeds when removing the pieces it replaces fails', async () => {
  const disk = stickyDisk();
  const storage = await opened({ disk });
  const bytes = randomBytes(BLOCK_BYTES);
  const session = await storage.startSession(HOME, 'sequential', body(bytes.subarray(0, 100_000)), false);
  disk.folder = 'blocks';
  const at = { session, offset: 100_000 };
  expect(await refusal(storage.appendSession(HOME, at, body(bytes.subarray(100_000)), false))).toBe('done');
  disk.folder = undefined;
  await storage.finishSession(HOME, { session, offset: BLOCK_BYTES }, commit('/a'), body());
  expect((await put(storage, '/b', bytes)).sizeBytes).toBe(BLOCK_BYTES);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});
