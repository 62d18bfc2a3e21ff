import { expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { HOME, put } from './opened.ts';
import { openedShared, postgresTests, type SharedStorage } from './opened-shared.ts';

const { newPlace } = postgresTests();

const DAY_MS = 24 * 60 * 60 * 1000;

/** More revisions than one round of housekeeping looks through. */
const REVISIONS = 100_500;

/** Opens a storage half a year after a file in it was replaced, and before that many others were made. */
async function openedAfterLongHistory(): Promise<SharedStorage> {
  const place = await newPlace();
  const clock = new ManualClock(Date.now());
  const { storage, pool } = await openedShared(place, { clock });
  for (const text of ['one', 'two']) await put(storage, '/f', text);
  await pool.query(
    `INSERT INTO davgate.revision
       (ns, number, parent, name_key, name, path, id, content, client_ms, server_ms, version)
     SELECT ns, n, parent, name_key || n, name || n, path || n, 'id:' || n, content, client_ms, server_ms, version
     FROM (SELECT * FROM davgate.revision ORDER BY number DESC LIMIT 1) AS made, generate_series(1, $1) AS n`,
    [REVISIONS],
  );
  await storage.close();
  return await openedShared(place, { clock: new ManualClock(clock.now() + 181 * DAY_MS) });
}

/** Returns the number of revisions of the file, and whether the history counts as looked through. */
async function stateIn({ pool }: SharedStorage) {
  const { rows } = await pool.query<{ revisions: number; isDone: boolean }>(
    `SELECT count(*) AS revisions, (SELECT bool_and(tidied_tick > 0) FROM davgate.namespace) AS "isDone"
     FROM davgate.revision WHERE path = '/f'`,
  );
  return rows[0];
}

test('housekeeping looks through the whole history of a namespace that no process uses, however long it is', async () => {
  const opened = await openedAfterLongHistory();
  await opened.storage.tidy();
  expect(await stateIn(opened)).toEqual({ revisions: 1, isDone: true });
});

test('housekeeping of a namespace in use goes on where its last round ended, and the history counts as looked through at the end', async () => {
  const opened = await openedAfterLongHistory();
  await opened.storage.stat(HOME, '/f', false);
  await opened.storage.tidy();
  expect(await stateIn(opened)).toEqual({ revisions: 2, isDone: false });
  await opened.storage.tidy();
  expect(await stateIn(opened)).toEqual({ revisions: 1, isDone: true });
});
