import { expect, test } from 'vitest';
import { Contents } from '../../../src/service/storage/blocks/contents.ts';
import { Purge } from '../../../src/service/storage/blocks/purge.ts';
import { Feed } from '../../../src/service/storage/feed/feed.ts';
import { TreeRemovals } from '../../../src/service/storage/tree/tree-removals.ts';
import { plansOf } from './plans.ts';

/** Returns the query plan of every statement that the feed prepares, by its SQL. */
async function plans(): Promise<readonly (readonly [sql: string, plan: string])[]> {
  const all = await plansOf((listening, database) => {
    const contents = new Contents(database);
    new Feed(listening, new TreeRemovals(database, contents, new Purge(database, contents)));
  });
  // The staging table has one row for each running large move.
  return all.map(([sql, plan]) => [sql, plan.replaceAll('SCAN staging', '')]);
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
