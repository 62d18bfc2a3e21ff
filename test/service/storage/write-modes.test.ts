import { describe, expect, test } from 'vitest';
import type { Storage, StoredWriteMode } from '../../../src/service/storage/storage.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { body, commit, HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

const MODES = ['add', 'overwrite', 'current rev', 'old rev', 'rev of nothing'] as const;
type Mode = (typeof MODES)[number];

/** Writes `content` to `/target`, which holds `before`. Returns `written`, `kept` or the refusal. */
async function outcome(
  before: 'nothing' | 'folder' | 'file',
  mode: Mode,
  content: string,
  strictConflict: boolean,
) {
  const storage = await opened();
  if (before === 'folder') await storage.createFolder(HOME, '/target', false);
  const old = before === 'file' ? await put(storage, '/target', 'old') : undefined;
  const current = before === 'file' ? await put(storage, '/target', 'current') : undefined;
  const modes: Record<Mode, StoredWriteMode> = {
    add: { tag: 'add' },
    overwrite: { tag: 'overwrite' },
    'current rev': { tag: 'update', rev: current?.rev ?? '0123456789' },
    'old rev': { tag: 'update', rev: old?.rev ?? '0123456789' },
    'rev of nothing': { tag: 'update', rev: 'abcdef0123' },
  };
  try {
    const file = await storage.upload(
      HOME,
      commit('/Target', { mode: modes[mode], strictConflict }),
      body(content),
    );
    if (current && file.rev === current.rev) return 'kept';
    expect(await textAt(storage, '/target')).toBe(content);
    if (current) expect(file).toMatchObject({ id: current.id, name: 'target' });
    return 'written';
  } catch (failure) {
    if (current) expect(await storage.stat(HOME, '/target', false)).toEqual(current);
    return failure instanceof Error ? failure.message : failure;
  }
}

/** Outcomes of the five modes, by letter. */
const LETTERS: Record<string, string> = { w: 'written', k: 'kept', c: 'conflict/file', f: 'conflict/folder' };

// The table of service-api.md §9.2.
describe.each([
  ['nothing', 'new', false, 'wwwww'],
  ['nothing', 'new', true, 'wwccc'],
  ['folder', 'new', false, 'fffff'],
  ['folder', 'new', true, 'fffff'],
  ['file', 'current', false, 'kkkkk'],
  ['file', 'current', true, 'ckkcc'],
  ['file', 'new', false, 'cwwcc'],
  ['file', 'new', true, 'cwwcc'],
] as const)('upload over %s, content %j, strict conflict %s', (before, content, strict, expected) => {
  test.each(MODES.map((mode, index) => [mode, LETTERS[expected[index] ?? '']] as const))(
    `an upload over ${before} with content ${content}, strict conflict ${strict} and mode %s answers %s`,
    async (mode, result) => {
      expect(await outcome(before, mode, content, strict)).toBe(result);
    },
  );
});

test('a write below a file is refused as file_ancestor, also with autorename', async () => {
  const storage = await opened();
  await put(storage, '/a/file', 'x');
  expect(await refusal(put(storage, '/a/file/b', 'y'))).toBe('conflict/file_ancestor');
  expect(await refusal(put(storage, '/a/file/b/c', 'y'))).toBe('conflict/file_ancestor');
  expect(await refusal(storage.createFolder(HOME, '/a/FILE/b', true))).toBe('conflict/file_ancestor');
  expect(await refusal(storage.upload(HOME, commit('/a/file/b', { autorename: true }), body('y')))).toBe(
    'conflict/file_ancestor',
  );
});

async function added(storage: Storage, content: string, mode: StoredWriteMode = { tag: 'add' }) {
  return (await storage.upload(HOME, commit('/a.txt', { mode, autorename: true }), body(content))).name;
}

test('autorename takes the next free number, and keeps the name for identical content', async () => {
  const storage = await opened();
  expect(await added(storage, '0')).toBe('a.txt');
  expect(await added(storage, '1')).toBe('a (1).txt');
  expect(await added(storage, '2')).toBe('a (2).txt');
  expect(await added(storage, '0')).toBe('a.txt');
  await storage.remove(HOME, '/A (1).txt');
  expect(await added(storage, '3')).toBe('a (1).txt');
  expect(await added(storage, '4', { tag: 'update', rev: 'abcdef0123' })).toBe('a (conflicted copy).txt');
  expect(await added(storage, '5', { tag: 'update', rev: 'abcdef0123' })).toBe('a (conflicted copy 1).txt');
  await storage.createFolder(HOME, '/v1.0', false);
  expect((await storage.createFolder(HOME, '/V1.0', true)).name).toBe('V1.0 (1)');
  expect(await refusal(storage.createFolder(HOME, '/a.txt', false))).toBe('conflict/file');
  expect(await refusal(storage.createFolder(HOME, '/v1.0', false))).toBe('conflict/folder');
  const overFolder = commit('/v1.0', { mode: { tag: 'overwrite' }, autorename: true });
  expect((await storage.upload(HOME, overFolder, body('x'))).name).toBe('v1 (1).0');
});

test('revs are hexadecimal, grow and never repeat, also when the clock steps back', async () => {
  let nowMs = Date.UTC(2026, 0, 1);
  const storage = await opened({
    clock: { ...systemClock, now: () => nowMs, sleep: () => Promise.resolve() },
  });
  const revs: string[] = [];
  for (const [index, step] of [0, 0, 1000, -5000, 0, 7000].entries()) {
    nowMs += step;
    revs.push((await put(storage, '/a', String(index))).rev);
  }
  for (const rev of revs) expect(rev).toMatch(/^[0-9a-f]{9,31}$/);
  expect([...revs].sort()).toEqual(revs);
  expect(new Set(revs).size).toBe(revs.length);
});

test('an upload keeps the client time given and sets the server time itself', async () => {
  const storage = await opened({
    clock: { ...systemClock, now: () => 1_700_000_000_123, sleep: () => Promise.resolve() },
  });
  expect(await put(storage, '/a', 'x')).toMatchObject({
    clientModifiedMs: 1_700_000_000_123,
    serverModifiedMs: 1_700_000_000_123,
  });
  const given = commit('/b', { clientModifiedMs: 981_173_106_000 });
  expect(await storage.upload(HOME, given, body('x'))).toMatchObject({
    clientModifiedMs: 981_173_106_000,
    serverModifiedMs: 1_700_000_000_123,
  });
});

test('of 20 parallel uploads with mode add to one name one succeeds and the others answer conflict/file', async () => {
  const storage = await opened();
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      refusal(storage.upload(HOME, commit('/Dir/a'), body(`content ${index}`))),
    ),
  );
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === 'conflict/file')).toHaveLength(19);
  expect(
    (await storage.list(OWNER, { path: '/dir', recursive: true, includeDeleted: true }, 100)).entries,
  ).toHaveLength(2);
});

test('an upload that is too long, has another hash or breaks off stores nothing', async () => {
  const storage = await opened();
  const long = { ...body(Buffer.alloc(5_000_000), Buffer.alloc(5_000_000)), bytesMax: 9_999_999 };
  expect(await refusal(storage.upload(HOME, commit('/a'), long))).toBe('body/payload_too_large');
  const other = { ...body('x'), contentHash: '0'.repeat(64) };
  expect(await refusal(storage.upload(HOME, commit('/a'), other))).toBe('body/content_hash_mismatch');
  const broken = async function* () {
    yield Buffer.alloc(5_000_000, 1);
    throw new Error('the client went away');
  };
  expect(await refusal(storage.upload(HOME, commit('/a'), { bytes: broken(), bytesMax: 2 ** 40 }))).toBe(
    'the client went away',
  );
  expect(await refusal(() => storage.stat(HOME, '/a', true))).toBe('lookup/not_found');
  expect(await blockFiles(storage.dataDirectory)).toEqual([]);
});

async function blockFiles(dataDirectory: string): Promise<string[]> {
  const { readdir } = await import('node:fs/promises');
  return [...(await readdir(`${dataDirectory}/blocks`)), ...(await readdir(`${dataDirectory}/incoming`))];
}
