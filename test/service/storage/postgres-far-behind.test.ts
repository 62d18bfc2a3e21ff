import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { Gate } from '../../support/gate.ts';
import { commit, HOME, put, textAt } from './opened.ts';
import { postgresTests } from './opened-shared.ts';

const { two } = postgresTests();

/** More commits than are caught up with under a lock. */
const MANY = 1001;

/** Makes many commits, and changes a file in them. */
async function changeOften(storage: Storage): Promise<void> {
  await put(storage, '/changed', 'first');
  for (let count = 0; count < MANY; count++) await storage.createNamespace(HOME, 2 ** 40 + count);
  await put(storage, '/changed', 'last');
}

/** Uploads a file, and calls `meanwhile` before its last byte. */
async function uploadDuring(storage: Storage, path: string, meanwhile: () => Promise<void>): Promise<void> {
  const gate = new Gate();
  async function* bytes() {
    yield Buffer.from('be');
    await gate.pass();
    yield Buffer.from('hind');
  }
  const uploaded = storage.upload(HOME, commit(path), { bytes: bytes(), bytesMax: 100 });
  await gate.reached;
  await meanwhile();
  gate.open();
  await uploaded;
}

test('an upload during which another process makes more than 1,000 commits is stored', async () => {
  const { one, other } = await two();
  await put(one, '/before', 'text');
  await uploadDuring(one, '/f', () => changeOften(other));
  expect(await textAt(other, '/f')).toBe('behind');
  expect(await textAt(one, '/changed')).toBe('last');
  expect(await textAt(one, '/before')).toBe('text');
});

test('an upload is stored when its process has loaded the namespace again after more than 1,000 commits of another one', async () => {
  const { one, other } = await two();
  await put(one, '/before', 'text');
  await uploadDuring(one, '/f', async () => {
    await changeOften(other);
    expect(await textAt(one, '/changed')).toBe('last');
  });
  for (const storage of [one, other]) expect(await textAt(storage, '/f')).toBe('behind');
});
