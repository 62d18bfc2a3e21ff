import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { type Disk, localDisk } from '../../../src/service/storage/blocks/disk.ts';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { BLOCK_BYTES, contentHashOf } from '../../../src/util/content-hash.ts';
import { effort } from '../../support/effort.ts';
import { expectSound } from './invariants.ts';
import { body, bytesOf, commit, HOME, opened } from './opened.ts';

const MIB = 1024 * 1024;

/** Step between the tried numbers of microtask turns; `npm run test:long` tries all forty. */
const TURNS_STEP = Math.ceil(4 / effort(1));

type Moment = 'create' | 'read' | 'answer';

/** Returns a disk that calls a hook once before a file is made or read, or after a folder was synced. */
function watchedDisk(): Disk & { readonly before: Partial<Record<Moment, () => Promise<unknown>>> } {
  const before: Partial<Record<Moment, () => Promise<unknown>>> = {};
  const happen = async (moment: Moment) => {
    const work = before[moment];
    delete before[moment];
    await work?.();
  };
  return {
    ...localDisk,
    before,
    create: async (path) => {
      await happen('create');
      return await localDisk.create(path);
    },
    read: async (path, sizeBytes, into) => {
      await happen('read');
      return await localDisk.read(path, sizeBytes, into);
    },
    syncFolder: async (path) => {
      await localDisk.syncFolder(path);
      await happen('answer');
    },
  };
}

/** Makes a session from these pieces, so that its last block consists of several. */
async function sessionOf(storage: Storage, pieces: readonly Buffer[], close: boolean): Promise<string> {
  const session = await storage.startSession(HOME, 'sequential', body(), false);
  let offset = 0;
  for (const [index, piece] of pieces.entries()) {
    const isLast = close && index === pieces.length - 1;
    await storage.appendSession(HOME, { session, offset }, body(piece), isLast);
    offset += piece.length;
  }
  return session;
}

async function expectFile(storage: Storage, path: string, bytes: Buffer): Promise<void> {
  const file = await storage.stat(HOME, path, false);
  if (file.kind !== 'file') throw new Error(`${path} is a ${file.kind}`);
  expect([file.sizeBytes, file.contentHash]).toEqual([bytes.length, contentHashOf(bytes)]);
  expect((await bytesOf(storage.read(HOME, file, undefined))).equals(bytes)).toBe(true);
}

const wordsOf = (outcomes: readonly unknown[]) =>
  outcomes.map((outcome) => (outcome instanceof Error ? outcome.message : 'done'));

test.each([
  ['beyond its block', 3 * BLOCK_BYTES],
  ['inside its block', 100],
])(
  'an entry of finishSessions with a wrong offset %s does not affect the right entry of the same session',
  async (_, wrong) => {
    const storage = await opened();
    const pieces = [randomBytes(MIB), randomBytes(MIB), randomBytes(100_000)];
    const bytes = Buffer.concat(pieces);
    const session = await sessionOf(storage, pieces, true);
    const outcomes = await storage.finishSessions(HOME, [
      { session, offset: wrong, commit: commit('/wrong') },
      { session, offset: bytes.length, commit: commit('/right') },
    ]);
    expect(wordsOf(outcomes)).toEqual(['session/incorrect_offset', 'done']);
    await expectFile(storage, '/right', bytes);
  },
);

test('two entries of finishSessions are stored whole when the session of one is closed meanwhile', async () => {
  const disk = watchedDisk();
  const storage = await opened({ disk });
  const pieces = [randomBytes(MIB), randomBytes(MIB)] as const;
  const late = await sessionOf(storage, [pieces[0]], false);
  const other = await sessionOf(storage, pieces, true);
  // Closes the first session while the last block of the second one is assembled.
  disk.before.create = () =>
    storage.appendSession(HOME, { session: late, offset: MIB }, body(pieces[1]), true);
  const outcomes = await storage.finishSessions(HOME, [
    { session: late, offset: 2 * MIB, commit: commit('/late') },
    { session: other, offset: 2 * MIB, commit: commit('/other') },
  ]);
  expect(wordsOf(outcomes)).toEqual(['done', 'done']);
  await expectFile(storage, '/late', Buffer.concat(pieces));
  await expectFile(storage, '/other', Buffer.concat(pieces));
});

test('two consecutive parts in two parallel batches are stored whole, and a second part that comes too early is refused by its offset', async () => {
  const disk = watchedDisk();
  const storage = await opened({ disk });
  const bytes = randomBytes(BLOCK_BYTES);
  const middle = 1000;
  const seconds = new Set<string>();
  for (let turns = 0; turns < 40; turns += TURNS_STEP) {
    const session = await storage.startSession(HOME, 'sequential', body(), false);
    const send = async (from: number, to: number) => {
      const piece = { session, offset: from, sizeBytes: to - from, close: false };
      const outcomes = await storage.appendSessions(HOME, [piece], body(bytes.subarray(from, to)));
      return wordsOf(outcomes)[0];
    };
    // The second part is on the disk. The first one, which needs no disk, arrives `turns` turns before the
    // second one's commit.
    let first: Promise<unknown> | undefined;
    disk.before.answer = async () => {
      first = send(0, middle);
      for (let turn = 0; turn < turns; turn++) await undefined;
    };
    const second = await send(middle, bytes.length);
    expect(await first).toBe('done');
    seconds.add(second ?? 'no outcome');
    // If the second part came before the first was committed, it is sent again.
    if (second !== 'done') expect(await send(middle, bytes.length)).toBe('done');
    const at = { session, offset: bytes.length };
    await storage.finishSession(HOME, at, commit(`/${turns}`), body());
    await expectFile(storage, `/${turns}`, bytes);
  }
  expect([...seconds].sort()).toEqual(['done', 'session/incorrect_offset']);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test.each(['read', 'create'] as const)(
  'a part that is sent twice in parallel is added once, also when the pieces before it are removed meanwhile (%s)',
  async (moment) => {
    const disk = watchedDisk();
    const storage = await opened({ disk });
    const pieces = [randomBytes(MIB), randomBytes(BLOCK_BYTES - MIB)] as const;
    const session = await sessionOf(storage, [pieces[0]], false);
    const send = () => storage.appendSession(HOME, { session, offset: MIB }, body(pieces[1]), false);
    const again = async () => {
      // The first one replaces the pieces by the whole block, and their files are removed.
      await send();
      await storage.tidy();
    };
    if (moment === 'read') disk.before.read = again;
    else
      disk.before.create = async () => {
        disk.before.create = again;
      };
    await expect(send()).rejects.toMatchObject({
      refusal: { tag: 'incorrect_offset', correctOffset: BLOCK_BYTES },
    });
    await storage.finishSession(HOME, { session, offset: BLOCK_BYTES }, commit('/once'), body());
    await expectFile(storage, '/once', Buffer.concat(pieces));
  },
);
