import type { Pool } from 'pg';
import type { GuessCounts, Guesses, GuessKeys } from '../../../http/guess-counter.ts';
import { deleteUnlocked, type Queries, rowsOf } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { GuessRows } from '../guess-rows.ts';

type Row = Guesses & { readonly key: string };

const COLUMNS = 'guess_key AS key, wrong, expires_ms AS "expiresMs"';

/** The number of wrong passwords in a row that exists only to be locked; removed in the same transaction. */
const NONE = 0;

/** Returns the wrong passwords in a database. */
export function guessRowsIn(pool: Pool): GuessRows {
  return {
    async find(keys) {
      const sql = `SELECT ${COLUMNS} FROM davgate.guesses WHERE guess_key = ANY ($1)`;
      return countsIn(keys, await rowsOf<Row>(pool, sql, [keys.name, keys.client]));
    },
    // Not durable: a right password is counted and taken back too, and must not be slow.
    update: (keys, change) => inTransaction(pool, (on) => update(on, keys, change), { isDurable: false }),
    forgetOld: (nowMs, limit) =>
      deleteUnlocked(
        pool,
        { table: 'guesses', key: 'guess_key', condition: 'expires_ms <= $1', values: [nowMs] },
        limit,
      ),
  };
}

async function update(
  on: Queries,
  keys: GuessKeys,
  change: (counts: GuessCounts) => GuessCounts,
): Promise<GuessCounts> {
  const before = countsIn(keys, await lockedRows(on, keys));
  const after = change(before);
  for (const which of ['name', 'client'] as const)
    await replace(on, keys[which], before[which], after[which]);
  return before;
}

/** Returns both rows, locked; adds those that are missing. Every process locks them in the same order. */
function lockedRows(on: Queries, keys: GuessKeys): Promise<readonly Row[]> {
  return rowsOf<Row>(
    on,
    `INSERT INTO davgate.guesses (guess_key, wrong, expires_ms) VALUES ($1, ${NONE}, 0), ($2, ${NONE}, 0)
     ON CONFLICT (guess_key) DO UPDATE SET wrong = guesses.wrong RETURNING ${COLUMNS}`,
    ...[keys.name, keys.client].sort(),
  );
}

async function replace(
  on: Queries,
  key: string,
  before: Guesses | undefined,
  after: Guesses | undefined,
): Promise<void> {
  if (after === undefined) await on.query('DELETE FROM davgate.guesses WHERE guess_key = $1', [key]);
  else if (after !== before)
    await on.query('UPDATE davgate.guesses SET wrong = $2, expires_ms = $3 WHERE guess_key = $1', [
      key,
      after.wrong,
      after.expiresMs,
    ]);
}

function countsIn(keys: GuessKeys, rows: readonly Row[]): GuessCounts {
  const ofKey = (wanted: string): Guesses | undefined => {
    const row = rows.find(({ key, wrong }) => key === wanted && wrong !== NONE);
    return row && { wrong: row.wrong, expiresMs: row.expiresMs };
  };
  return { name: ofKey(keys.name), client: ofKey(keys.client) };
}
