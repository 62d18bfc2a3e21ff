import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { nameMatcher } from '../../../src/service/search/name-match.ts';
import { matchesOf, type Search } from '../../../src/service/search/search.ts';
import type { NameLookup, Storage } from '../../../src/service/storage/storage.ts';
import { NameIndex } from '../../../src/service/storage/tree/name-index.ts';
import { silentLog } from '../../../src/util/log.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { effort } from '../../support/effort.ts';
import { toVersion11 } from './old-schema.ts';
import { HOME, OWNER, opened, put } from './opened.ts';
import { plansOf } from './plans.ts';

/** Returns, for each way to look up names, the paths found for a query and the number of names compared. */
async function found(storage: Storage, query: string, { path = '', deleted = false } = {}) {
  const matcher = nameMatcher(query);
  const lookups: NameLookup[] = matcher.words.map((word) => ({ by: 'word', ...word }));
  const ways: { paths: string[]; looked: number }[] = [];
  for (const lookup of [...lookups, { by: 'change' as const }, { by: 'folder' as const }]) {
    let looked = 0;
    const matches = (nameKey: string) => {
      looked++;
      return matcher.rank(nameKey) !== undefined;
    };
    const parts = matcher.words.map(({ text }) => text);
    const paths: string[] = [];
    for await (const items of storage.findNames(HOME, { path, deleted }, lookup, { parts, matches }))
      paths.push(...items.map(({ pathLower }) => pathLower));
    ways.push({ paths, looked });
  }
  return ways;
}

/** Returns the paths found, which must be the same for each way. */
async function pathsFound(...asked: Parameters<typeof found>): Promise<string[]> {
  const [first, ...others] = (await found(...asked)).map(({ paths }) => paths.sort());
  for (const other of others) expect(other).toEqual(first);
  return first ?? [];
}

const part = fc.constantFrom('note', 'not', 'a', 'J̌', 'Über', '日本', '😀', '-', '.', '_', ' ', '7');
const name = fc
  .array(part, { minLength: 1, maxLength: 4 })
  .map((parts) => `${parts.join('')}x`.normalize('NFC'));
const query = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''));

test('the word index finds the same names as a walk through all names, live and deleted', async () => {
  const storage = await opened();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(name, { minLength: 1, maxLength: 8, selector: (one) => one.toLowerCase() }),
      fc.array(query, { minLength: 1, maxLength: 5 }),
      fc.nat(7),
      async (names, queries, gone) => {
        const path = `/run ${runs++}`;
        await Promise.all(names.map((one) => storage.createFolder(HOME, `${path}/${one}`, false)));
        await storage.remove(HOME, `${path}/${names[gone % names.length]}`);
        for (const asked of queries)
          for (const deleted of [false, true]) {
            const listing = { path, recursive: true, includeDeleted: true };
            const walked = (await storage.list(OWNER, listing, 100)).entries.filter((entry) => {
              const isWanted = (entry.kind === 'deleted') === deleted && entry.pathLower !== path;
              return isWanted && nameMatcher(asked).rank(entry.name) !== undefined;
            });
            expect(await pathsFound(storage, asked, { path, deleted })).toEqual(
              walked.map(({ pathLower }) => pathLower).sort(),
            );
          }
      },
    ),
    { numRuns: effort(8) },
  );
});

test('a search for a word looks only at the names that contain it', async () => {
  const storage = await opened();
  await Promise.all(
    Array.from({ length: 500 }, (_, index) => storage.createFolder(HOME, `/holiday photo ${index}`, false)),
  );
  await storage.createFolder(HOME, '/other/holiday zebra', false);
  for (const asked of ['holiday zebra', 'zebra holiday', 'zeb', 'holiday z'])
    expect(await pathsFound(storage, asked)).toEqual(['/other/holiday zebra']);
  const count = (text: string, exact: boolean, max: number, deleted = false) =>
    storage.countNamed(HOME, deleted, { text, exact }, max);
  expect([await count('holiday', true, 300), await count('holi', false, 1000)]).toEqual([300, 501]);
  expect([await count('zebra', true, 300), await count('zebra', true, 300, true)]).toEqual([1, 0]);
  // Items with the same name are counted separately.
  await storage.createFolder(HOME, '/third/holiday zebra', false);
  expect(await count('zebra', true, 300)).toBe(2);
  expect((await found(storage, 'holiday zebra')).map(({ looked }) => looked)).toEqual([1, 1, 2, 2]);
});

/** Makes a storage appear to have many more names, and counts the names compared and the items looked up. */
function largeAccount(storage: Storage) {
  const account = { looked: 0, fitting: 0, steps: 0, find };
  const large: Storage = {
    ...storage,
    countNamed: async (namespace, deleted, word, max) =>
      Math.min(max, 10_000 * (await storage.countNamed(namespace, deleted, word, max))),
    countBelow: async (namespace, scope, max) =>
      Math.min(max, scope.path === '' ? max : await storage.countBelow(namespace, scope, max)),
    async *findNames(namespace, scope, lookup, { parts, matches }) {
      const looking = (nameKey: string) => {
        account.looked++;
        const fits = matches(nameKey);
        if (fits) account.fitting++;
        return fits;
      };
      for await (const items of storage.findNames(namespace, scope, lookup, { parts, matches: looking })) {
        account.steps++;
        yield items;
      }
    },
  };
  async function find(query: string, search: Partial<Search> = {}): Promise<string[]> {
    Object.assign(account, { looked: 0, fitting: 0, steps: 0 });
    const all = { path: '', status: 'active', order: 'relevance', extensions: [], categories: [] } as const;
    const signal = new AbortController().signal;
    const found = await matchesOf(large, HOME, { ...all, query, ...search }, signal);
    return found.map(({ pathLower }) => pathLower);
  }
  return account;
}

test.each(['relevance', 'last_modified_time'] as const)(
  'a search ordered by %s for common words that no name has together looks at no name',
  async (order) => {
    const storage = await opened();
    const names = Array.from(
      { length: 60 },
      (_, index) => `${index % 2 ? 'report' : 'invoice'} ${index} data`,
    );
    await Promise.all(names.map((one) => storage.createFolder(HOME, `/${one}`, false)));
    const account = largeAccount(storage);
    expect(await account.find('report invoice', { order })).toEqual([]);
    expect(account.looked).toBe(0);
    expect(await account.find('data invoice', { order })).toHaveLength(30);
    expect(account.looked).toBe(30);
  },
);

test.each(['relevance', 'last_modified_time'] as const)(
  'a search ordered by %s for a common word in a small folder looks only at the names in that folder',
  async (order) => {
    const storage = await opened();
    const paths = Array.from(
      { length: 600 },
      (_, index) => `/${index < 597 ? 'large' : 'small/x'}/report ${index}`,
    );
    await Promise.all(paths.map((path) => storage.createFolder(HOME, path, false)));
    const account = largeAccount(storage);
    expect((await account.find('report', { order, path: '/small' })).sort()).toEqual(paths.slice(597));
    expect([account.looked, account.steps]).toEqual([3, 1]);
    expect(await account.find('report', { order, path: '/small', status: 'deleted' })).toEqual([]);
    expect(account.looked).toBe(0);
  },
);

test('a search for a category that no matching name has looks up no item', async () => {
  const storage = await opened();
  await Promise.all(Array.from({ length: 30 }, (_, index) => put(storage, `/report ${index}.pdf`, 'x')));
  const account = largeAccount(storage);
  expect(await account.find('report', { categories: ['image'] })).toEqual([]);
  expect(account.fitting).toBe(0);
  expect(await account.find('report', { categories: ['image', 'pdf'] })).toHaveLength(30);
});

test('a search for symbols looks at no more than two names', async () => {
  const storage = await opened();
  await Promise.all(
    ['a-b.txt', 'a - b', 'a--b', 'one §.txt', 'two §§', '😀 smile'].map((one) =>
      put(storage, `/${one}`, 'x'),
    ),
  );
  for (const [asked, paths] of [
    ['§§', ['/two §§']],
    ['--', ['/a--b']],
    ['😀', ['/😀 smile']],
    ['§-', []],
    ['+', []],
    ['. .', []],
  ] as const) {
    const [first] = await found(storage, asked);
    expect(first?.paths, asked).toEqual(paths);
    expect(first?.looked, asked).toBeLessThanOrEqual(2);
  }
});

test('a search by relevance looks at the names of the rarest word', async () => {
  const storage = await opened();
  await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      storage.createFolder(HOME, `/report ${index} ${index % 10 ? 'beta' : 'alpha'}`, false),
    ),
  );
  const account = largeAccount(storage);
  expect(await account.find('alpha report')).toHaveLength(4);
  expect(account.looked).toBeLessThan(10);
  expect(await account.find('report nowhere')).toEqual([]);
  expect(account.looked).toBe(0);
});

test('a moved file is found by its new name and path, and by its old name among the deleted', async () => {
  const storage = await opened();
  await put(storage, '/old/letter one', 'text');
  await storage.relocate(HOME, '/old/letter one', '/new/note two', { copy: false, autorename: false });
  expect(await pathsFound(storage, 'letter')).toEqual([]);
  expect(await pathsFound(storage, 'letter', { deleted: true })).toEqual(['/old/letter one']);
  expect(await pathsFound(storage, 'note')).toEqual(['/new/note two']);
  expect(await pathsFound(storage, 'note', { path: '/old' })).toEqual([]);
  await storage.removeForever(HOME, '/old/letter one');
  expect(await pathsFound(storage, 'letter', { deleted: true })).toEqual([]);
});

test('housekeeping removes the words of names without an item', async () => {
  const storage = await opened();
  for (const path of ['/kept alive', '/gone forever', '/gone trash']) await put(storage, path, path);
  await storage.removeForever(HOME, '/gone forever');
  await storage.remove(HOME, '/gone trash');
  await storage.tidy();
  await storage.close();
  const database = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  onTestFinished(() => void database.close());
  const words = database.prepare('SELECT word || name_key FROM word').pluck().all();
  expect(words.sort()).toEqual(['alivekept alive', 'gonegone trash', 'keptkept alive', 'trashgone trash']);
});

/** Statements that turn a database into the schema of a version. */
const OLD = {
  4: `ALTER TABLE holding DROP COLUMN files; DROP TABLE removal; DROP TABLE staging; DROP TABLE word; DROP INDEX entry_name;
    DROP INDEX deletion_name; PRAGMA user_version = 4`,
  7: `DELETE FROM word WHERE word IN ('§', '. '); DROP TABLE staging;
    ALTER TABLE removal DROP COLUMN moved; PRAGMA user_version = 7`,
};

test.each([4, 7] as const)(
  'a data directory of version %s is searchable after its upgrade, which logs its progress',
  async (version) => {
    const storage = await opened();
    await put(storage, '/Reports/annual report', 'text');
    await put(storage, '/Reports/gone report', 'text');
    await put(storage, '/Reports/§. 1', 'text');
    await storage.remove(HOME, '/reports/gone report');
    await storage.close();
    const old = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
    toVersion11(old);
    old.exec(OLD[version]);
    old.close();
    const events: string[] = [];
    const log = { ...silentLog, info: (event: string) => events.push(event) };
    const upgraded = await opened({ dataDirectory: storage.dataDirectory, log });
    expect(
      events.filter((event) => !/^upgrading the (entries|revisions|files and folders): /.test(event)),
    ).toEqual([
      ...(version === 4 ? ['upgrading the quota: 1 of 1 contents'] : []),
      'upgrading the index: 3 of 4 names',
      'upgrading the index: 4 of 4 names',
    ]);
    expect(await pathsFound(upgraded, 'annual')).toEqual(['/reports/annual report']);
    expect(await pathsFound(upgraded, 'gone', { deleted: true })).toEqual(['/reports/gone report']);
    for (const symbols of ['§', '. ', '§.'])
      expect(await pathsFound(upgraded, symbols)).toEqual(['/reports/§. 1']);
  },
);

test('no statement of a search reads a whole table or sorts its rows', async () => {
  const plans = await plansOf((database) => new NameIndex(database));
  const read = plans.filter(([sql]) => !sql.startsWith('INSERT'));
  expect(read.length).toBeGreaterThan(6);
  for (const [sql, plan] of read)
    expect(plan.replaceAll(/^SCAN (\(subquery.*|staging)$/gm, ''), sql).not.toMatch(/SCAN|TEMP B-TREE/);
});
