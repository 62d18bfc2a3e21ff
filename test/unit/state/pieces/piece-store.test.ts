import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PieceStore, TooManyPieces, UploadRemoved } from '../../../../src/state/pieces/piece-store.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;

let parent: string;
let clock: ManualClock;
let store: PieceStore;

async function open(limits = {}): Promise<PieceStore> {
  return PieceStore.open({ directory: join(parent, 'uploads'), clock, log: silentLog, limits });
}

beforeEach(async () => {
  parent = mkdtempSync(join(tmpdir(), 'davgate-pieces-'));
  clock = new ManualClock(Date.now());
  store = await open();
});
afterEach(async () => {
  await store.close();
  rmSync(parent, { recursive: true, force: true });
});

async function* bodyOf(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

const namesIn = (id: string) => [...(store.upload('ann', id)?.pieces.keys() ?? [])];

async function contentOf(id: string): Promise<string> {
  let text = '';
  const pieces = [...(store.upload('ann', id)?.pieces.values() ?? [])];
  for await (const bytes of store.read('ann', id, pieces)) text += Buffer.from(bytes).toString();
  return text;
}

/** Returns all files and folders of the store. */
const onDisk = () => readdirSync(join(parent, 'uploads'), { recursive: true, encoding: 'utf8' });

test('pieces of an earlier run are there after a restart, also with names that no file may have', async () => {
  const id = 'up/load: ü';
  await store.create('ann', id);
  expect(await store.add('ann', id, '1', bodyOf('one ', 'piece'))).toBe(true);
  expect(await store.add('ann', id, '2', bodyOf(', two'))).toBe(true);
  await store.create('bob', id);
  await store.close();
  store = await open();
  expect(store.uploadsOf('ann').map((upload) => upload.id)).toEqual([id]);
  expect(store.upload('ann', id)?.pieces.get('1')).toMatchObject({ name: '1', sizeBytes: 9 });
  expect(await contentOf(id)).toBe('one piece, two');
  expect(store.upload('bob', id)?.pieces.size).toBe(0);
  expect(store.upload('eve', id)).toBeUndefined();
});

test('after a restart, a piece that a kill cut short is gone', async () => {
  await store.create('ann', 'a');
  await store.add('ann', 'a', '1', bodyOf('one'));
  const folder = onDisk().find((name) => name.endsWith('/a')) ?? '';
  writeFileSync(join(parent, 'uploads', folder, 'x.arriving'), 'half a pie');
  await store.close();
  store = await open();
  expect(namesIn('a')).toEqual(['1']);
  expect(onDisk().filter((name) => name.includes('arriving'))).toEqual([]);
});

test('a piece whose body fails is not kept, and one of the same name stays as it was', async () => {
  await store.create('ann', 'a');
  await store.add('ann', 'a', '1', bodyOf('old'));
  async function* broken() {
    yield Buffer.from('new');
    throw new Error('the connection broke');
  }
  await expect(store.add('ann', 'a', '1', broken())).rejects.toThrow('the connection broke');
  await expect(store.add('ann', 'a', '2', broken())).rejects.toThrow('the connection broke');
  expect([namesIn('a'), await contentOf('a')]).toEqual([['1'], 'old']);
  expect(await store.add('ann', 'a', '1', bodyOf('newer'))).toBe(false);
  expect(await contentOf('a')).toBe('newer');
});

test('an upload is removed a day after its last piece, and not before', async () => {
  await store.create('ann', 'a');
  await store.create('ann', 'b');
  await clock.advance(23 * HOUR_MS);
  await store.add('ann', 'b', '1', bodyOf('late'));
  await clock.advance(2 * HOUR_MS);
  await eventually(() => expect(store.uploadsOf('ann').map(({ id }) => id)).toEqual(['b']));
  expect(await contentOf('b')).toBe('late');
  await clock.advance(22 * HOUR_MS);
  // Time that passes while the first removal goes on wakes nobody.
  await eventually(async () => {
    await clock.advance(HOUR_MS);
    expect(onDisk().filter((name) => name.includes('/'))).toEqual([]);
  });
  expect(store.uploadsOf('ann')).toEqual([]);
});

test('an upload that was given up a day before a restart is removed at the start', async () => {
  await store.create('ann', 'a');
  await store.add('ann', 'a', '1', bodyOf('one'));
  await store.close();
  clock.stepWall(25 * HOUR_MS);
  store = await open();
  expect(store.uploadsOf('ann')).toEqual([]);
});

test('the pieces of a user have a maximum size, which a removed upload makes free again', async () => {
  await store.close();
  store = await open({ bytesOfUserMax: 10 });
  await store.create('ann', 'a');
  await store.create('ann', 'b');
  await store.create('bob', 'a');
  await store.add('ann', 'a', '1', bodyOf('1234567'));
  await expect(store.add('ann', 'b', '1', bodyOf('123', '4'))).rejects.toThrow(TooManyPieces);
  await store.add('bob', 'a', '1', bodyOf('1234567'));
  await store.add('ann', 'b', '1', bodyOf('123'));
  await store.remove('ann', 'a');
  await store.add('ann', 'b', '2', bodyOf('1234567'));
  expect(await contentOf('b')).toBe('1231234567');
});

test('the uploads of a user and the pieces of an upload have a maximum number', async () => {
  await store.close();
  store = await open({ uploadsOfUserMax: 2, piecesMax: 2 });
  await store.create('ann', 'a');
  await store.create('ann', 'b');
  await expect(store.create('ann', 'c')).rejects.toThrow(TooManyPieces);
  for (const name of ['1', '2']) await store.add('ann', 'a', name, bodyOf(name));
  await expect(store.add('ann', 'a', '3', bodyOf('3'))).rejects.toThrow(TooManyPieces);
  expect(await store.add('ann', 'a', '2', bodyOf('two'))).toBe(false);
});

test('a piece that arrives while its upload is removed is refused and leaves nothing on the disk', async () => {
  await store.create('ann', 'a');
  async function* slow() {
    yield Buffer.from('first');
    await store.remove('ann', 'a');
    yield Buffer.from('second');
  }
  await expect(store.add('ann', 'a', '1', slow())).rejects.toThrow(UploadRemoved);
  expect(onDisk().filter((name) => name.includes('/'))).toEqual([]);
});
