import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openPostgresDirectory } from '../../src/service/directory/postgres/postgres-directory.ts';
import { SIGNED_IN_MAX } from '../../src/service/oauth/signed-in.ts';
import { openPool } from '../../src/service/postgres/connect.ts';
import { silentLog } from '../../src/util/log.ts';
import { directoryContract } from '../contract/directory/directory.contract.ts';
import {
  addAccount,
  NOW_MS,
  newConsent,
  type OpenedTwice,
} from '../contract/directory/directory-under-test.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
/** Connections of two processes. */
let pools: readonly [Pool, Pool];

// One database for all tests, whose connections take more time than the tests.
beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.newDatabase();
  pools = [openPool(url, silentLog), openPool(url, silentLog)];
  await openPostgresDirectory(pools[0]);
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await postgres.close();
});

/** Opens an empty directory through both pools. */
async function openEmpty(): Promise<OpenedTwice> {
  const { rows } = await pools[0].query<{ name: string }>(
    `SELECT string_agg('davgate.' || tablename, ', ') AS name FROM pg_tables
     WHERE schemaname = 'davgate' AND tablename NOT IN ('schema', 'stored_entries')`,
  );
  await pools[0].query(`TRUNCATE ${rows[0]?.name}; UPDATE davgate.stored_entries SET entries = 0`);
  const [first, second] = [await openPostgresDirectory(pools[0]), await openPostgresDirectory(pools[1])];
  return { directory: first.directory, other: second.directory };
}

directoryContract('PostgreSQL', openEmpty);

describe('the directory in PostgreSQL', () => {
  test('an access token and its account are one statement', async () => {
    const { directory } = await openEmpty();
    const token = await directory.tokens.grantAccess(NOW_MS, await newConsent(directory));
    const query = vi.spyOn(pools[0], 'query');
    expect(await directory.tokens.bearer(NOW_MS, token)).toBeDefined();
    expect(query).toHaveBeenCalledTimes(1);
  });

  test('of more sign-ins than the maximum, the ones that end first are dropped', async () => {
    const { directory } = await openEmpty();
    const [pool] = pools;
    const { id: accountId } = await addAccount(directory);
    const signedIn = { accountId, passwordHash: Buffer.from('hash'), signedInFor: '' };
    await directory.signedIn.add('first', { ...signedIn, expiresMs: NOW_MS + 1 });
    await directory.signedIn.add('second', { ...signedIn, expiresMs: NOW_MS + 2 });
    await pool.query(
      `INSERT INTO davgate.signed_in SELECT int4send(n), $1, '', '', $2 FROM generate_series(3, $3) AS n`,
      [accountId, NOW_MS + 3, SIGNED_IN_MAX],
    );
    await Promise.all(
      ['third', 'fourth'].map((id) => directory.signedIn.add(id, { ...signedIn, expiresMs: NOW_MS + 4 })),
    );
    for (const dropped of ['first', 'second'])
      expect(await directory.signedIn.find(NOW_MS, dropped)).toBeUndefined();
    for (const kept of ['third', 'fourth']) expect(await directory.signedIn.find(NOW_MS, kept)).toBeDefined();
    const { rows } = await pool.query('SELECT count(*) FROM davgate.signed_in');
    expect(rows).toEqual([{ count: SIGNED_IN_MAX }]);
  });
});
