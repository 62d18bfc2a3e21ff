import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { HOME, opened, put, temporaryFolder } from './opened.ts';
import { openedShared, postgresTests } from './opened-shared.ts';

const { newPlace } = postgresTests();

/** Makes items of all kinds. Returns their ids by what has become of them, with one of no item. */
async function itemsOf(storage: Storage): Promise<Readonly<Record<string, string>>> {
  const file = async (path: string) => (await put(storage, path, 'text')).id;
  const folder = async (path: string) => (await storage.createFolder(HOME, path, false)).id;
  const move = (from: string, to: string) =>
    storage.relocate(HOME, from, to, { copy: false, autorename: false });
  const ids = {
    file: await file('/file'),
    folder: await folder('/folder'),
    'deleted file': await file('/deleted'),
    'deleted folder': await folder('/deleted folder'),
    'moved file': await file('/moved'),
    'deleted after a move': await file('/moved and deleted'),
    'replaced after its deletion': await file('/replaced'),
    // Its deletion at the former place remains.
    'folder removed forever after a move': await folder('/gone folder elsewhere'),
    'file removed forever': await file('/gone'),
    'folder removed forever': await folder('/gone folder'),
    'file in a folder removed forever': await file('/gone folder/file'),
    'removed forever after its deletion': await file('/gone later'),
    'file removed forever after a move': await file('/gone elsewhere'),
    'no item': 'id:AAAAAAAAAAAAAAAAAAAAAA',
  };
  for (const name of ['deleted', 'deleted folder', 'replaced', 'gone later'])
    await storage.remove(HOME, `/${name}`);
  await file('/replaced');
  await move('/moved', '/elsewhere');
  await move('/moved and deleted', '/deleted elsewhere');
  await storage.remove(HOME, '/deleted elsewhere');
  await move('/gone elsewhere', '/gone 1');
  await move('/gone folder elsewhere', '/gone 2');
  for (const name of ['gone', 'gone folder', 'gone later', 'gone 1', 'gone 2'])
    await storage.removeForever(HOME, `/${name}`);
  await storage.tidy();
  return ids;
}

test('the ids of items that exist or can be restored are known as in a data directory where their namespace is loaded, and it is loaded nowhere for that', async () => {
  const namesKnown = async (storage: Storage, ids: Readonly<Record<string, string>>) => {
    const known = await storage.known(HOME, Object.values(ids));
    return Object.keys(ids).filter((name) => known?.has(ids[name] ?? ''));
  };
  const place = await newPlace();
  const { storage } = await openedShared(place);
  const ids = await itemsOf(storage);
  const names = await namesKnown(storage, ids);
  const alone = await opened();
  expect(names).toEqual(await namesKnown(alone, await itemsOf(alone)));
  expect(names).toEqual(Object.keys(ids).slice(0, names.length));
  expect(names.at(-1)).toBe('folder removed forever after a move');
  const scratchDirectory = await temporaryFolder();
  const { storage: other } = await openedShared(place, { scratchDirectory });
  await other.createNamespace('other', 2 ** 40);
  for (const home of [HOME, 'other']) expect(await other.known(home, Object.values(ids))).toBeUndefined();
  expect(await readdir(join(scratchDirectory, 'copies'))).toEqual([]);
  const { id } = await put(other, '/new', 'text');
  expect(await storage.known(HOME, [id])).toEqual(new Set([id]));
});

test('whether a namespace is loaded is known without a question to the database, and one that a round of housekeeping has loaded is', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place);
  const { id } = await put(one, '/file', 'text');
  await one.close();
  const statements: string[] = [];
  const { storage, pool } = await openedShared(place, {}, (own) => noting(own, statements));
  statements.length = 0;
  expect(await storage.known(HOME, [id])).toBeUndefined();
  expect(await storage.known('other', [id])).toBeUndefined();
  expect(statements).toEqual([]);
  await pool.query('UPDATE davgate.namespace SET tidied_tick = 0');
  await storage.tidy();
  expect(await storage.known(HOME, [id])).toEqual(new Set([id]));
});

/** Returns a pool that adds the statements without a connection of their own to a list. */
function noting(pool: Pool, statements: string[]): Pool {
  return new Proxy(pool, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value;
      return (query: string | { readonly text: string }, values?: unknown[]) => {
        statements.push(typeof query === 'string' ? query : query.text);
        return target.query(query as string, values);
      };
    },
  });
}
