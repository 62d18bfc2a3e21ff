import { expect, test } from 'vitest';
import type { Storage, StoredFile } from '../../../../src/service/storage/storage.ts';
import { thumbnailOf } from '../../../../src/service/thumbnails/thumbnail.ts';

const FILE: StoredFile = {
  kind: 'file',
  id: 'id:x',
  name: 'x.png',
  pathLower: '/x.png',
  pathDisplay: '/x.png',
  rev: '0123456789',
  sizeBytes: 1,
  contentHash: '0'.repeat(64),
  clientModifiedMs: 0,
  serverModifiedMs: 0,
};
const WANTED = { format: 'jpeg', mode: 'strict', box: { width: 1, height: 1 } } as const;

test('an image that nobody waits for any more when its turn comes is not even read', async () => {
  let reads = 0;
  let release = () => undefined as unknown;
  const held = new Promise((resolve) => {
    release = () => resolve(undefined);
  });
  const storage = {
    read: async function* () {
      reads++;
      await held;
      yield Buffer.from('x');
    },
  } as unknown as Storage; // all that a thumbnail asks of it
  const asked = (signal: AbortSignal) => thumbnailOf(storage, FILE, WANTED, signal);
  const stays = new AbortController();
  const goes = new AbortController();
  // As many as are made at once, and two in line behind them.
  const first = [asked(stays.signal), asked(goes.signal)];
  const gone = asked(goes.signal);
  const last = asked(stays.signal);
  const refused = expect(gone).rejects.toThrow('gone');
  goes.abort(new Error('gone'));
  release();
  await refused;
  expect(await Promise.all([...first, last])).toEqual(Array(3).fill('unsupported_image'));
  expect(reads).toBe(3);
});
