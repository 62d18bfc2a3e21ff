import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { OWNER, opened, put } from './opened.ts';

/** Changes elsewhere in the namespace. */
const CHANGES = 20_000;

/** Turns that other calls get at least while a call examines these changes, and fewer during one that does not. */
const TURNS_MIN = 20;

const QUIET = { path: '/quiet', recursive: true, includeDeleted: false };

const never = new AbortController().signal;

/** Closes the storage, adds changes outside of the folder `/quiet`, and opens it again. */
async function reopened(storage: Storage & { readonly dataDirectory: string }): Promise<Storage> {
  const { dataDirectory } = storage;
  await storage.close();
  const database = new Sqlite(join(dataDirectory, 'storage.sqlite'));
  database.exec(`
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${CHANGES})
    INSERT INTO entry (ns, parent, name_key, name, path, id, seq)
      SELECT namespace.id, '/', 'x' || n, 'x' || n, '/x' || n, 'id:x' || n, tick + n FROM number, namespace;
    UPDATE namespace SET tick = tick + ${CHANGES}`);
  database.close();
  return await opened({ dataDirectory });
}

/** Returns what a call answers, and how many turns other calls got meanwhile. */
async function turnsDuring<T>(call: Promise<T>): Promise<{ answer: T; turns: number }> {
  let turns = 0;
  let isRunning = true;
  const ended = call.finally(() => {
    isRunning = false;
  });
  for (; isRunning; turns++) await turn();
  return { answer: await ended, turns };
}

test('a long poll of a quiet folder lets other calls run while it examines many changes elsewhere, and the next one does not examine them again', async () => {
  const first = await opened();
  await put(first, '/quiet/file', 'text');
  const cursor = await first.latestCursor(OWNER, QUIET);
  const storage = await reopened(first);
  const scan = await turnsDuring(storage.awaitChange(cursor, 0, never));
  expect(scan.answer).toBe(false);
  expect(scan.turns).toBeGreaterThan(TURNS_MIN);
  const again = await turnsDuring(storage.awaitChange(cursor, 0, never));
  expect(again.answer).toBe(false);
  expect(again.turns).toBeLessThan(TURNS_MIN);
  await put(storage, '/quiet/file', 'new text');
  expect(await storage.awaitChange(cursor, 0, never)).toBe(true);
});

test('a long poll that examines many changes ends when its client leaves, when the storage closes, and with a change in its folder', async () => {
  const first = await opened();
  await put(first, '/quiet/file', 'text');
  const cursor = await first.latestCursor(OWNER, QUIET);
  const storage = await reopened(first);
  const leaving = new AbortController();
  const left = storage.awaitChange(cursor, 480_000, leaving.signal);
  await turn();
  leaving.abort(new Error('the client has gone'));
  await expect(left).rejects.toThrow('the client has gone');
  const closing = storage.awaitChange(cursor, 480_000, never);
  await turn();
  await storage.close();
  expect(await closing).toBe(false);
  const again = await opened({ dataDirectory: first.dataDirectory });
  const changed = again.awaitChange(cursor, 480_000, never);
  await put(again, '/quiet/other', 'text');
  expect(await changed).toBe(true);
});

test('a listing that ends after many changes elsewhere is complete, and a bounded number of empty pages follows', async () => {
  const first = await opened();
  for (const name of ['a', 'b', 'c']) await put(first, `/quiet/${name}`, name);
  const names: string[] = [];
  let page = await first.list(OWNER, QUIET, 2);
  names.push(...page.entries.map(({ name }) => name));
  const storage = await reopened(first);
  for (let pages = 0; page.hasMore; pages++) {
    expect(pages).toBeLessThan(6);
    page = await storage.listContinue(OWNER, page.cursor);
    names.push(...page.entries.map(({ name }) => name));
  }
  expect(names).toEqual(['quiet', 'a', 'b', 'c']);
});
