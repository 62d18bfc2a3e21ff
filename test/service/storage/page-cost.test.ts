import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Contents } from '../../../src/service/storage/blocks/contents.ts';
import { Purge } from '../../../src/service/storage/blocks/purge.ts';
import { Feed } from '../../../src/service/storage/feed/feed.ts';
import { openDatabase } from '../../../src/service/storage/storage-database.ts';
import { TreeRemovals } from '../../../src/service/storage/tree/tree-removals.ts';
import { temporaryFolder } from './opened.ts';

/** Returns the query plan of every statement that the feed prepares, by its SQL. */
async function plans(): Promise<[sql: string, plan: string][]> {
  const database = await openDatabase(join(await temporaryFolder(), 'storage.sqlite'));
  onTestFinished(() => void database.close());
  const sources: string[] = [];
  const listening = Object.create(database) as typeof database;
  listening.prepare = ((sql: string) => {
    sources.push(sql);
    return database.prepare(sql);
  }) as typeof database.prepare;
  const contents = new Contents(database);
  new Feed(listening, new TreeRemovals(database, contents, new Purge(database, contents)));
  const named = {
    ns: 1,
    from: '/',
    to: '0',
    parent: '/a/',
    nameKey: 'b',
    since: 5,
    latest: 9,
    ...{ limit: 10, skipped: 9 },
  };
  return sources.map((sql) => {
    const rows = database.prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(named);
    // The staging table has one row for each running large move.
    const steps = rows.map(({ detail }) => detail).filter((detail) => detail !== 'SCAN staging');
    return [sql, steps.join('\n')];
  });
}

test('no statement of a listing or of its changes reads a whole table or sorts its rows', async () => {
  const all = await plans();
  expect(all.length).toBeGreaterThan(8);
  for (const [sql, plan] of all) expect(plan, sql).not.toMatch(/SCAN|TEMP B-TREE/);
});

test('the query of a recursive listing is bounded by its position and its folder', async () => {
  const recursive = (await plans()).filter(([sql]) => /\(\S+, \S+\) > \(@parent, @nameKey\)/.test(sql));
  expect(recursive).toHaveLength(2);
  for (const [sql, plan] of recursive)
    expect(plan, sql).toContain('PRIMARY KEY (ns=? AND (parent,name_key)>(?,?) AND parent<?)');
});

test('the query of a page of changes skips the rows of a running large move', async () => {
  const changes = (await plans()).filter(([sql]) =>
    /FROM \(SELECT \* FROM entry[\s\S]*seq > @since/.test(sql),
  );
  expect(changes).toHaveLength(2);
  for (const [sql, plan] of changes) expect(plan, sql).toContain('seq>? AND seq<?');
});
