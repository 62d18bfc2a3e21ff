import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { StoredFile } from '../../../src/service/storage/storage.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { expectSound } from './invariants.ts';
import { HOME, opened, put } from './opened.ts';

/** Opens a storage with a reader in the middle of a file that has been removed forever. */
async function readingOn(clock: ManualClock) {
  const storage = await opened({ clock });
  const bytes = randomBytes(100_000);
  const file: StoredFile = await put(storage, '/a', bytes);
  const reader = storage.read(HOME, file, undefined)[Symbol.asyncIterator]();
  const { value } = await reader.next();
  expect(bytes.equals(value)).toBe(true);
  await storage.removeForever(HOME, '/a');
  return { storage, reader };
}

test('a read is whole although its last block cannot be cleared away, and the next round does it', async () => {
  const clock = new ManualClock();
  const { storage, reader } = await readingOn(clock);
  const end = reader.next();
  // Lets the cleanup wait too long for its commit.
  for (let turn = 0; turn < 100; turn++) await undefined;
  await clock.advance(1001);
  expect(await end).toEqual({ done: true, value: undefined });
  // Waits until the committer has refused it.
  await new Promise((resolve) => setImmediate(resolve));
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a reader that ends after its storage closed throws no error, and the next start clears up after it', async () => {
  const clock = new ManualClock();
  const { storage, reader } = await readingOn(clock);
  await storage.close();
  expect(await reader.return?.()).toEqual({ done: true, value: undefined });
  const again = await opened({ clock, dataDirectory: storage.dataDirectory });
  await again.tidy();
  await again.close();
  expectSound(storage.dataDirectory);
});

test('a reader that ends while its storage closes is cleared up at the next start', async () => {
  const clock = new ManualClock();
  const { storage, reader } = await readingOn(clock);
  const closed = storage.close();
  await reader.return?.();
  await closed;
  const again = await opened({ clock, dataDirectory: storage.dataDirectory });
  await again.tidy();
  await again.close();
  expectSound(storage.dataDirectory);
});
