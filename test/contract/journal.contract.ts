import { describe, expect, test } from 'vitest';
import { BodyGone, type Journal, type PendingWrite } from '../../src/state/journal.ts';
import { contentHashOf } from '../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { path } from '../support/paths.ts';

/** Sizes of bodies that are stored in a row, up to 64 KiB, or in a file. */
const SIZES = [0, 1, 64 * 1024, 64 * 1024 + 1, 5_000_000];

export function pendingWrite(id: string, bytes: Uint8Array, more: Partial<PendingWrite> = {}): PendingWrite {
  return {
    id,
    path: path(`/folder/${id}`),
    fileId: `pending:${id}`,
    sizeBytes: bytes.byteLength,
    contentHash: contentHashOf(bytes),
    modifiedMs: 1_000,
    acceptedMs: 2_000,
    dueMs: 0,
    replaces: undefined,
    replacesHash: undefined,
    folderId: undefined,
    ...more,
  };
}

/** Yields `bytes` in pieces, like the body of a request. */
export async function* pieces(bytes: Uint8Array, sizeBytes = 10_000): AsyncIterable<Uint8Array> {
  for (let start = 0; start < bytes.byteLength; start += sizeBytes)
    yield bytes.subarray(start, start + sizeBytes);
}

export async function accept(journal: Journal, write: PendingWrite, bytes: Uint8Array, supersedes?: string) {
  await journal.accept(write, await journal.stage(pieces(bytes)), supersedes);
}

export async function bodyOf(journal: Journal, id: string, range?: { start: number; end: number }) {
  const read: Uint8Array[] = [];
  for await (const piece of journal.read(id, range)) read.push(piece);
  return Buffer.concat(read);
}

/** Tests an implementation of `Journal`; `open` returns an empty one. */
export function journalContract(driver: string, open: () => Promise<Journal>): void {
  describe(`the journal in ${driver}`, () => {
    test.each(SIZES)('a body of %i bytes is read back whole and in part', async (size) => {
      const journal = await open();
      const bytes = pseudoRandomBytes(size, size);
      const staged = await journal.stage(pieces(bytes));
      expect(staged).toMatchObject({ sizeBytes: size, contentHash: contentHashOf(bytes) });
      await journal.accept(pendingWrite('a', bytes), staged);
      expect((await bodyOf(journal, 'a')).equals(bytes)).toBe(true);
      if (size === 0) return;
      const range = { start: Math.floor(size / 3), end: Math.ceil((size * 2) / 3) };
      const part = await bodyOf(journal, 'a', range);
      expect(part.equals(bytes.subarray(range.start, range.end))).toBe(true);
    });

    test('writes are returned unchanged in the order in which they were accepted', async () => {
      const journal = await open();
      const writes = ['c', 'a', 'b'].map((id) =>
        pendingWrite(id, Buffer.from(id), { replaces: `r${id}`, folderId: `id:${id}` }),
      );
      for (const write of writes) await accept(journal, write, Buffer.from(write.id));
      expect(await journal.all()).toEqual(writes);
    });

    test.each([10, 100_000])(
      'a write of %i bytes that supersedes another one replaces it and its body',
      async (size) => {
        const journal = await open();
        const [old, now] = [pseudoRandomBytes(size, 1), pseudoRandomBytes(size, 2)];
        await accept(journal, pendingWrite('old', old), old);
        await accept(journal, pendingWrite('now', now), now, 'old');
        expect((await journal.all()).map(({ id }) => id)).toEqual(['now']);
        await expect(bodyOf(journal, 'old')).rejects.toThrow(BodyGone);
        expect((await bodyOf(journal, 'now')).equals(now)).toBe(true);
      },
    );

    test('a change keeps the body of a write, and forgetting one write can change another in the same step', async () => {
      const journal = await open();
      const bytes = Buffer.from('bytes');
      const [one, two] = [pendingWrite('one', bytes), pendingWrite('two', bytes)];
      for (const write of [one, two]) await accept(journal, write, bytes);
      await journal.change({ ...one, modifiedMs: 9_000, dueMs: 5 });
      expect((await journal.all())[0]).toEqual({ ...one, modifiedMs: 9_000, dueMs: 5 });
      const changed = { ...two, replaces: 'rev', replacesHash: 'hash', fileId: 'id:1' };
      await journal.forget(['one'], [changed]);
      expect(await journal.all()).toEqual([changed]);
      expect((await bodyOf(journal, 'two')).toString()).toBe('bytes');
      await journal.forget(['one', 'none']);
    });

    test('50 concurrent writes are all accepted with their bodies', async () => {
      const journal = await open();
      const ids = Array.from({ length: 50 }, (_, index) => `${index}`);
      await Promise.all(ids.map((id) => accept(journal, pendingWrite(id, Buffer.from(id)), Buffer.from(id))));
      expect((await journal.all()).map(({ id }) => id).sort()).toEqual(ids.sort());
      for (const id of ids) expect((await bodyOf(journal, id)).toString()).toBe(id);
    });

    test.each([100, 200_000])('a body that fails after %i bytes leaves no write behind', async (size) => {
      const journal = await open();
      const lost = new Error('connection lost');
      async function* failing() {
        yield* pieces(pseudoRandomBytes(size, 3));
        throw lost;
      }
      await expect(journal.stage(failing())).rejects.toBe(lost);
      expect(await journal.all()).toEqual([]);
    });
  });
}
