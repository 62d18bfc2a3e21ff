import { createHash, randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { expect, test } from 'vitest';
import { type Disk, localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { BLOCK_BYTES } from '../../../src/util/content-hash.ts';
import { body, HOME, opened, put } from './opened.ts';

/**
 * A disk that records the names that survive a loss of power: those renamed before the start of a folder sync.
 */
function forgetfulDisk(): Disk & { readonly durable: Set<string>; syncs: number } {
  const written = new Set<string>();
  const renamed = new Set<string>();
  const disk = {
    ...localDisk,
    durable: new Set<string>(),
    syncs: 0,
    create: async (path: string) => {
      const file = await localDisk.create(path);
      let unsynced = true;
      return {
        append: async (chunks: readonly Uint8Array[]) => {
          unsynced = true;
          await file.append(chunks);
        },
        sync: async () => {
          await file.sync();
          unsynced = false;
        },
        close: async () => {
          if (!unsynced) written.add(path);
          await file.close();
        },
      };
    },
    rename: async (from: string, to: string) => {
      await localDisk.rename(from, to);
      if (written.has(from)) renamed.add(basename(to));
    },
    syncFolder: async (path: string) => {
      const covered = [...renamed];
      disk.syncs++;
      await localDisk.syncFolder(path);
      for (const name of covered) disk.durable.add(name);
    },
  };
  return disk;
}

test('an acknowledged write has its blocks on durable storage, and parallel writes share folder syncs', async () => {
  const disk = forgetfulDisk();
  const storage = await opened({ disk });
  const shared = randomBytes(100_000);
  const unsafe: string[] = [];
  const check = (name: string, ...blocks: Buffer[]) => {
    for (const block of blocks)
      if (!disk.durable.has(createHash('sha256').update(block).digest('hex'))) unsafe.push(name);
  };
  await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const own = randomBytes(70_000 + index);
      if (index % 3 === 0) {
        await put(storage, `/${index}`, own);
        check('upload', own);
      } else if (index % 3 === 1) {
        // Parallel uploads of the same bytes wait for the first one.
        await put(storage, `/${index}`, shared);
        check('upload of the same', shared);
      } else {
        const session = await storage.startSession(HOME, 'sequential', body(own), false);
        check('start', own);
        const block = Buffer.concat([own, randomBytes(BLOCK_BYTES - own.length)]);
        const at = { session, offset: own.length };
        await storage.appendSession(HOME, at, body(block.subarray(own.length), shared), false);
        check('append', block, shared);
      }
    }),
  );
  expect(unsafe).toEqual([]);
  expect(disk.syncs).toBeLessThan(disk.durable.size);
});
