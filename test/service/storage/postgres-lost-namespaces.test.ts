import { expect, test } from 'vitest';
import { Gate } from '../../support/gate.ts';
import { bytesOf, commit, HOME, refusal } from './opened.ts';
import { openedShared, postgresTests } from './opened-shared.ts';

const { newPlace } = postgresTests();

/** Another account's namespace. */
const OTHER = 'other';

/** Opens a storage with a file in each of two namespaces. */
async function openedWithTwo() {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  await storage.createNamespace(OTHER, 2 ** 40);
  const put = async (namespace: string, path: string, text = path) => {
    const bytes = async function* () {
      yield Buffer.from(text);
    };
    await storage.upload(namespace, commit(path), { bytes: bytes(), bytesMax: 100 });
  };
  await put(HOME, '/mine');
  await put(OTHER, '/theirs');
  return { storage, pool, put };
}

/** Gives each of the two namespaces the other's number, as a promoted standby may that lacked both. */
const SWAP = `
  UPDATE davgate.namespace SET name = 'taken' WHERE name = '${HOME}';
  UPDATE davgate.namespace SET name = '${HOME}' WHERE name = '${OTHER}';
  UPDATE davgate.namespace SET name = '${OTHER}' WHERE name = 'taken'`;

test('a namespace whose number another one has in a promoted database is found by its name', async () => {
  const { storage, pool, put } = await openedWithTwo();
  await pool.query(SWAP);
  expect(await refusal(storage.stat(HOME, '/mine', false))).toBe('lookup/not_found');
  const found = await storage.stat(HOME, '/theirs', false);
  if (found.kind !== 'file') throw new Error('it is no file');
  expect((await bytesOf(storage.read(HOME, found, undefined))).toString()).toBe('/theirs');
  await put(HOME, '/new');
  expect(await refusal(storage.stat(OTHER, '/new', false))).toBe('lookup/not_found');
});

test('an upload during which the number of its namespace becomes that of another one is not stored there', async () => {
  const { storage, pool } = await openedWithTwo();
  const gate = new Gate();
  const bytes = async function* () {
    await gate.pass();
    yield Buffer.from('text');
  };
  const uploaded = refusal(storage.upload(HOME, commit('/new'), { bytes: bytes(), bytesMax: 100 }));
  await gate.reached;
  await pool.query(SWAP);
  gate.open();
  expect(await uploaded).toMatch(/has to be loaded again/);
  for (const namespace of [HOME, OTHER])
    expect(await refusal(storage.stat(namespace, '/new', false))).toBe('lookup/not_found');
});

test('a namespace that a promoted database lacks is created again, and can be used', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  expect(await refusal(storage.stat(HOME, '/f', false))).toBe('lookup/not_found');
  await pool.query(`DELETE FROM davgate.namespace WHERE name = '${HOME}'`);
  expect(await refusal(storage.stat(HOME, '/f', false))).toBe('lookup/not_found');
  await storage.createFolder(HOME, '/f', false);
  const { storage: another } = await openedShared(place);
  expect(await another.stat(HOME, '/f', false)).toMatchObject({ kind: 'folder' });
});
