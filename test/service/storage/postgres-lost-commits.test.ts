import type { Pool } from 'pg';
import { expect, test } from 'vitest';
import { HOME, OWNER, put, refusal, textAt } from './opened.ts';
import { openedShared, postgresTests, tidyAll } from './opened-shared.ts';

const { two } = postgresTests();

const WHOLE = { path: '', recursive: true, includeDeleted: false };

/** Undoes the last commit of all namespaces, as a restored database lacks it. */
async function setBack(pool: Pool): Promise<void> {
  await pool.query(`
    WITH last AS (SELECT id, version FROM davgate.namespace), lost AS (
      DELETE FROM davgate.commit USING last WHERE commit.version = last.version), entries AS (
      DELETE FROM davgate.entry USING last WHERE entry.version = last.version), revisions AS (
      DELETE FROM davgate.revision USING last WHERE revision.version = last.version), holdings AS (
      DELETE FROM davgate.holding USING last WHERE holding.version = last.version), lists AS (
      DELETE FROM davgate.content_block USING last WHERE content_block.version = last.version), contents AS (
      DELETE FROM davgate.content USING last WHERE content.version = last.version), blocks AS (
      DELETE FROM davgate.block USING last WHERE block.version = last.version)
    UPDATE davgate.namespace SET version = namespace.version - 1,
      mark = (SELECT mark FROM davgate.commit WHERE commit.version = namespace.version - 1)`);
}

test('a storage that has been idle for longer than commits are remembered loads its copy again', async () => {
  const { one, other, place } = await two();
  await put(one, '/f', 'text');
  expect(await textAt(other, '/f')).toBe('text');
  await put(one, '/g', 'text');
  await one.remove(HOME, '/f');
  const { pool } = await openedShared(place);
  await pool.query('DELETE FROM davgate.commit');
  expect((await other.list(OWNER, WHOLE, 100)).entries.map(({ pathLower }) => pathLower)).toEqual(['/g']);
});

test('a database that was set back is what all storages show, also those that had the lost commits', async () => {
  const { one, other, place } = await two();
  const { pool } = await openedShared(place);
  await put(one, '/kept', 'kept');
  await put(one, '/lost', 'lost');
  expect(await textAt(other, '/lost')).toBe('lost');
  await setBack(pool);
  expect(await refusal(one.stat(HOME, '/lost', false))).toBe('lookup/not_found');
  await put(one, '/new', 'new');
  for (const storage of [one, other]) {
    expect(await textAt(storage, '/new')).toBe('new');
    expect(await textAt(storage, '/kept')).toBe('kept');
    expect(await refusal(storage.stat(HOME, '/lost', false))).toBe('lookup/not_found');
  }
});

test('a cursor that has seen a change that a restored database lacks is reset, also after further changes', async () => {
  const { one, place } = await two();
  const { pool } = await openedShared(place);
  await put(one, '/kept', 'kept');
  const before = (await one.list(OWNER, WHOLE, 100)).cursor;
  await put(one, '/lost', 'lost');
  const after = (await one.list(OWNER, WHOLE, 100)).cursor;
  const amid = (await one.list(OWNER, WHOLE, 1)).cursor;
  const changes = (await one.listContinue(OWNER, before)).cursor;
  await one.close();
  await setBack(pool);
  const { storage: restarted } = await openedShared(place);
  await put(restarted, '/new', 'new');
  await put(restarted, '/newer', 'newer');
  for (const seen of [after, amid, changes]) {
    expect(await refusal(restarted.listContinue(OWNER, seen))).toBe('cursor/reset');
    expect(await refusal(restarted.awaitChange(seen, 0, new AbortController().signal))).toBe('cursor/reset');
  }
  const page = await restarted.listContinue(OWNER, before);
  expect(page.entries.map(({ pathLower }) => pathLower)).toEqual(['/new', '/newer']);
});

test('a cursor is continued for a week of changes by others, and later it is reset', async () => {
  const { one, place } = await two();
  const { storage: quiet, pool } = await openedShared(place);
  await put(one, '/f', 'text');
  const { cursor } = await quiet.list(OWNER, WHOLE, 100);
  await put(one, '/g', 'text');
  await put(one, '/h', 'text');
  await pool.query(`UPDATE davgate.commit SET made = now() - interval '6 days'`);
  await tidyAll(one);
  expect((await one.listContinue(OWNER, cursor)).entries).toHaveLength(2);
  await pool.query(`UPDATE davgate.commit SET made = now() - interval '8 days'`);
  await pool.query('DELETE FROM davgate.lease');
  await tidyAll(one);
  expect(await refusal(one.listContinue(OWNER, cursor))).toBe('cursor/reset');
  const { cursor: last } = await one.list(OWNER, WHOLE, 100);
  expect((await one.listContinue(OWNER, last)).entries).toEqual([]);
});

test('a cursor that is used continues after weeks without a change, also after the next change', async () => {
  const { one, place } = await two();
  const { pool } = await openedShared(place);
  await put(one, '/f', 'text');
  const { cursor } = await one.list(OWNER, WHOLE, 100);
  await pool.query(`UPDATE davgate.commit SET made = now() - interval '30 days'`);
  await put(one, '/g', 'text');
  await tidyAll(one);
  expect((await one.listContinue(OWNER, cursor)).entries).toMatchObject([{ pathLower: '/g' }]);
});

test('a storage that loses a commit before it has another one with the same number loads its copy again', async () => {
  const { one, other, place } = await two();
  const { pool } = await openedShared(place);
  await put(one, '/f', 'text');
  await pool.query(`UPDATE davgate.commit SET mark = 'of another commit'`);
  await pool.query(`UPDATE davgate.namespace SET mark = 'of another commit'`);
  await put(other, '/g', 'text');
  expect((await one.list(OWNER, WHOLE, 10)).entries).toHaveLength(2);
});
