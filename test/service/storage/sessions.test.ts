import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { BLOCK_BYTES, contentHashOf } from '../../../src/util/content-hash.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { body, bytesOf, commit, HOME, opened, put, refusal, textAt } from './opened.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

async function contentAt(storage: Storage, path: string): Promise<Buffer> {
  const found = await storage.stat(HOME, path, false);
  if (found.kind !== 'file') throw new Error(`${path} is a ${found.kind}`);
  return await bytesOf(storage.read(HOME, found, undefined));
}

function start(
  storage: Storage,
  kind: 'sequential' | 'concurrent' = 'sequential',
  bytes: Uint8Array | string = '',
) {
  return storage.startSession(HOME, kind, body(bytes), false);
}

function append(
  storage: Storage,
  session: string,
  offset: number,
  bytes: Uint8Array | string,
  close = false,
) {
  return storage.appendSession(HOME, { session, offset }, body(bytes), close);
}

function finish(
  storage: Storage,
  session: string,
  offset: number,
  path: string,
  bytes: Uint8Array | string = '',
) {
  return storage.finishSession(HOME, { session, offset }, commit(path), body(bytes));
}

/** Cuts `bytes` into pieces of these sizes in turn. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let offset = 0, index = 0; offset < bytes.length; index++) {
    const size = sizes[index % sizes.length] ?? 1;
    pieces.push(bytes.subarray(offset, offset + size));
    offset += size;
  }
  return pieces;
}

test.each([
  ['blocks', [BLOCK_BYTES]],
  ['two blocks', [2 * BLOCK_BYTES]],
  ['odd sizes', [1, 1_000_003, 70_000, 5_000_000]],
  ['small pieces', [300_001]],
  ['one off a block', [BLOCK_BYTES - 1]],
  ['all at once', [20_000_000]],
])('a session stores the same file whatever its parts: %s', async (_, sizes) => {
  const storage = await opened();
  const bytes = randomBytes(13_000_001);
  const session = await start(storage);
  expect(session).toMatch(/^pid_upload_session:[\w-]{22}$/);
  let offset = 0;
  for (const piece of cut(bytes, sizes)) {
    await append(storage, session, offset, piece);
    offset += piece.length;
  }
  const file = await finish(storage, session, offset, '/a');
  expect(file).toMatchObject({ sizeBytes: bytes.length, contentHash: contentHashOf(bytes) });
  expect((await contentAt(storage, '/a')).equals(bytes)).toBe(true);
  await storage.close();
  expect(await readdir(join(storage.dataDirectory, 'blocks'))).toHaveLength(4);
});

test('a session takes bytes in start and finish', async () => {
  const storage = await opened();
  const session = await start(storage, 'sequential', 'one ');
  await append(storage, session, 4, 'two ');
  await finish(storage, session, 8, '/a', 'three');
  expect(await textAt(storage, '/a')).toBe('one two three');
  expect(await refusal(finish(storage, session, 13, '/b'))).toBe('session/not_found');
});

test('a session without bytes stores an empty file', async () => {
  const storage = await opened();
  expect(await finish(storage, await start(storage), 0, '/a')).toMatchObject({ sizeBytes: 0 });
});

test('append and finish at a wrong offset answer the right one and change nothing', async () => {
  const storage = await opened();
  const session = await start(storage, 'sequential', '12345');
  for (const offset of [0, 4, 6]) {
    await expect(append(storage, session, offset, 'x')).rejects.toMatchObject({
      refusal: { tag: 'incorrect_offset', correctOffset: 5 },
    });
    await expect(finish(storage, session, offset, '/a')).rejects.toMatchObject({
      refusal: { tag: 'incorrect_offset', correctOffset: 5 },
    });
  }
  const parallel = await Promise.all(
    ['a', 'b', 'c'].map((text) => refusal(append(storage, session, 5, text))),
  );
  expect(parallel.sort()).toEqual(['done', 'session/incorrect_offset', 'session/incorrect_offset']);
  expect((await finish(storage, session, 6, '/a')).sizeBytes).toBe(6);
});

test('a closed session takes no more bytes and can be finished', async () => {
  const storage = await opened();
  const session = await start(storage);
  await append(storage, session, 0, 'all', true);
  expect(await refusal(append(storage, session, 3, 'more'))).toBe('session/closed');
  expect(await refusal(finish(storage, session, 3, '/a', 'more'))).toBe('session/closed');
  await finish(storage, session, 3, '/a');
  expect(await textAt(storage, '/a')).toBe('all');
});

test('append refuses a wrong hash and a part that is too long', async () => {
  const storage = await opened();
  const session = await start(storage, 'sequential', '123');
  const at = { session, offset: 3 };
  expect(
    await refusal(
      storage.appendSession(HOME, at, { ...body('4'), contentHash: contentHashOf(Buffer.from('5')) }, false),
    ),
  ).toBe('body/content_hash_mismatch');
  expect(await refusal(storage.appendSession(HOME, at, { ...body('45'), bytesMax: 1 }, false))).toBe(
    'body/payload_too_large',
  );
  // The hash is that of the part alone, not of the file's blocks.
  const rest = randomBytes(BLOCK_BYTES + 10);
  await storage.appendSession(HOME, at, { ...body(rest), contentHash: contentHashOf(rest) }, false);
  expect((await finish(storage, session, 3 + rest.length, '/a')).contentHash).toBe(
    contentHashOf(Buffer.concat([Buffer.from('123'), rest])),
  );
});

test('finish keeps the bytes that came with it when its commit is refused', async () => {
  const storage = await opened();
  await put(storage, '/taken', 'x');
  const session = await start(storage, 'sequential', '123');
  expect(await refusal(finish(storage, session, 3, '/taken', '456'))).toBe('conflict/file');
  await expect(finish(storage, session, 3, '/free', '456')).rejects.toMatchObject({
    refusal: { tag: 'incorrect_offset', correctOffset: 6 },
  });
  await finish(storage, session, 6, '/free');
  expect(await textAt(storage, '/free')).toBe('123456');
});

test('the session of an upload whose commit was refused can be finished', async () => {
  const storage = await opened();
  await put(storage, '/taken', 'x');
  const bytes = randomBytes(5_000_000);
  const failure: unknown = await storage
    .upload(HOME, commit('/taken'), body(bytes))
    .catch((error: unknown) => error);
  const session = (failure as { uploadSession?: string }).uploadSession ?? '';
  expect(await finish(storage, session, bytes.length, '/free')).toMatchObject({
    contentHash: contentHashOf(bytes),
  });
});

test('an upload refused for waiting too long for its commit leaves no session', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const late = storage.upload(HOME, commit('/late'), body('small, so that nothing waits for a disk'));
  // The committer runs in the next turn of the event loop. These turns let the upload queue its commit before
  // that.
  for (let turn = 0; turn < 100; turn++) await undefined;
  await clock.advance(1001);
  expect(await refusal(late)).toBe('write/too_many_write_operations');
  await storage.close();
  const database = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  expect(database.prepare('SELECT id FROM session').all()).toEqual([]);
  database.close();
});

test('a concurrent session takes parts in any order, in parallel and repeated', async () => {
  const storage = await opened();
  const bytes = randomBytes(6 * BLOCK_BYTES + 5);
  const session = await start(storage, 'concurrent');
  const offsets = [6, 3, 0, 5, 3, 1, 4, 0].map((block) => block * BLOCK_BYTES);
  await Promise.all(
    offsets.map((offset) => {
      const blocks = offset === BLOCK_BYTES ? 2 : 1;
      const part = bytes.subarray(offset, offset + blocks * BLOCK_BYTES);
      return append(storage, session, offset, part, offset === 6 * BLOCK_BYTES);
    }),
  );
  // Repeats parts after the close, like a client that lost an answer.
  await append(storage, session, 6 * BLOCK_BYTES, bytes.subarray(6 * BLOCK_BYTES), true);
  await append(storage, session, 0, bytes.subarray(0, BLOCK_BYTES));
  const file = await finish(storage, session, bytes.length, '/a');
  expect(file.contentHash).toBe(contentHashOf(bytes));
  expect((await contentAt(storage, '/a')).equals(bytes)).toBe(true);
});

test('a concurrent session can be closed without bytes', async () => {
  const storage = await opened();
  const session = await start(storage, 'concurrent');
  await append(storage, session, 0, Buffer.alloc(BLOCK_BYTES));
  await append(storage, session, BLOCK_BYTES, '', true);
  expect((await finish(storage, session, BLOCK_BYTES, '/a')).sizeBytes).toBe(BLOCK_BYTES);
});

test('a concurrent session refuses each invalid part, close and finish with its own reason', async () => {
  const storage = await opened();
  expect(await refusal(start(storage, 'concurrent', 'x'))).toBe(
    'session/concurrent_session_data_not_allowed',
  );
  expect(await refusal(storage.startSession(HOME, 'concurrent', body(), true))).toBe(
    'session/concurrent_session_close_not_allowed',
  );
  const session = await start(storage, 'concurrent');
  const block = Buffer.alloc(BLOCK_BYTES, 1);
  expect(await refusal(append(storage, session, 5, block))).toBe('session/concurrent_session_invalid_offset');
  expect(await refusal(append(storage, session, 0, 'short'))).toBe(
    'session/concurrent_session_invalid_data_size',
  );
  await append(storage, session, 2 * BLOCK_BYTES, block);
  expect(await refusal(finish(storage, session, 3 * BLOCK_BYTES, '/a'))).toBe(
    'session/concurrent_session_not_closed',
  );
  expect(await refusal(append(storage, session, BLOCK_BYTES, 'the end', true))).toBe(
    'session/concurrent_session_invalid_offset',
  );
  await append(storage, session, 3 * BLOCK_BYTES, 'end', true);
  const size = 3 * BLOCK_BYTES + 3;
  expect(await refusal(append(storage, session, 4 * BLOCK_BYTES, block))).toBe('session/closed');
  expect(await refusal(append(storage, session, 0, block, true))).toBe('session/closed');
  expect(await refusal(finish(storage, session, size, '/a'))).toBe('session/concurrent_session_missing_data');
  expect(await refusal(finish(storage, session, size, '/a', 'x'))).toBe(
    'session/concurrent_session_data_not_allowed',
  );
  await expect(finish(storage, session, size + 1, '/a')).rejects.toMatchObject({
    refusal: { tag: 'incorrect_offset', correctOffset: size },
  });
  await append(storage, session, 0, Buffer.concat([block, block]));
  expect((await finish(storage, session, size, '/a')).sizeBytes).toBe(size);
});

test('append beyond the maximum size of a file answers too_large', async () => {
  const storage = await opened();
  const session = await start(storage, 'concurrent');
  const max = 2_199_019_061_248;
  await append(storage, session, max - BLOCK_BYTES, Buffer.alloc(BLOCK_BYTES));
  expect(await refusal(append(storage, session, max, Buffer.alloc(BLOCK_BYTES)))).toBe('session/too_large');
});

test('a session expires after seven days, survives a restart and belongs to its namespace', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const session = await start(storage, 'sequential', Buffer.alloc(200_000, 'x'));
  await storage.close();
  const again = await opened({ clock, dataDirectory: storage.dataDirectory });
  await clock.advance(7 * DAY_MS - 1);
  await append(again, session, 200_000, 'y');
  await again.createNamespace('other', 1000);
  expect(await refusal(again.appendSession('other', { session, offset: 200_001 }, body('z'), false))).toBe(
    'session/not_found',
  );
  await clock.advance(1);
  expect(await refusal(append(again, session, 200_001, 'z'))).toBe('session/not_found');
  expect(await refusal(finish(again, session, 200_001, '/a'))).toBe('session/not_found');
  await again.tidy();
  await again.close();
  expect(await readdir(join(again.dataDirectory, 'blocks'))).toEqual([]);
});

test('finishSessions answers each entry by itself, in order', async () => {
  const storage = await opened();
  await put(storage, '/taken', 'x');
  const closed = async (text: string) => {
    const session = await start(storage, 'sequential', text.slice(0, 1));
    await append(storage, session, 1, text.slice(1), true);
    return { session, offset: text.length };
  };
  const [one, two, three] = [await closed('one'), await closed('two'), await closed('three')];
  const open = { session: await start(storage, 'sequential', 'open'), offset: 4 };
  const outcomes = await storage.finishSessions(HOME, [
    { ...one, commit: commit('/dir/one') },
    { ...two, commit: commit('/new/../two') },
    { ...open, commit: commit('/open') },
    { ...two, commit: commit('/taken') },
    { ...three, offset: 4, commit: commit('/three') },
    { session: 'pid_upload_session:none', offset: 0, commit: commit('/none') },
    { ...two, commit: commit('/dir/two') },
    { ...one, commit: commit('/again') },
  ]);
  expect(
    outcomes.map((outcome) => (outcome instanceof Error ? outcome.message : outcome.pathDisplay)),
  ).toEqual([
    '/dir/one',
    'write/malformed_path',
    'session/not_closed',
    'conflict/file',
    'session/incorrect_offset',
    'session/not_found',
    '/dir/two',
    'session/not_found',
  ]);
  expect([await textAt(storage, '/dir/one'), await textAt(storage, '/dir/two')]).toEqual(['one', 'two']);
  expect(await refusal(() => storage.stat(HOME, '/new', false))).toBe('lookup/not_found');
});

test('finishSessions finishes a thousand sessions', async () => {
  const storage = await opened();
  const entries = await Promise.all(
    Array.from({ length: 1000 }, async (_, index) => {
      const session = await storage.startSession(HOME, 'sequential', body(`text ${index}`), true);
      return { session, offset: `text ${index}`.length, commit: commit(`/dir/${index}`) };
    }),
  );
  const outcomes = await storage.finishSessions(HOME, entries);
  expect(outcomes.filter((outcome) => outcome instanceof Error)).toEqual([]);
  expect(await textAt(storage, '/dir/999')).toBe('text 999');
});
