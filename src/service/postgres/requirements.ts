import type { Pool } from 'pg';
import { type Clock, elapsedMs, systemClock } from '../../util/clock.ts';
import { databaseName } from './connect.ts';
import { openingFailure, PostgresError, RejectedServerError } from './errors.ts';
import { databaseTime, findRow, type Queries } from './queries.ts';

/** The largest difference of the clocks, in ms. What has expired, and which moves were abandoned, is judged by the clock. */
const CLOCK_MS_MAX = 30_000;

/** What a database does in which a setting is off, and how to mend it. */
const WHEN_OFF: Readonly<Record<string, string>> = {
  fsync: 'loses acknowledged changes in a power cut (fsync = off): set fsync = on and restart PostgreSQL',
  full_page_writes:
    'can be damaged by a power cut (full_page_writes = off): set full_page_writes = on and reload PostgreSQL',
  synchronous_commit:
    'loses acknowledged changes in a crash (synchronous_commit = off): set it to on, at least for the user of davgate with ALTER ROLE',
};

/** Throws `RejectedServerError` for a server that may lose what it has acknowledged, such as a promoted one with other settings. */
export async function expectDurable(on: Queries, name: string): Promise<void> {
  const row = await findRow<{ off: string }>(
    on,
    `SELECT name AS off FROM unnest($1::text[]) AS name WHERE current_setting(name) = 'off' LIMIT 1`,
    Object.keys(WHEN_OFF),
  );
  if (row) throw new RejectedServerError(`${name} ${WHEN_OFF[row.off]}`);
}

/**
 * Throws `PostgresError` for a database that may lose what it has acknowledged, cannot store every name, or whose clock
 * and that of this machine differ.
 */
export async function expectReliable(pool: Pool, clock: Clock = systemClock): Promise<void> {
  const name = databaseName(pool);
  try {
    await expectDurable(pool, name);
    const row = await findRow<{ encoding: string }>(
      pool,
      `SELECT current_setting('server_encoding') AS encoding`,
    );
    if (row?.encoding !== 'UTF8')
      throw new PostgresError(
        'unusable',
        `${name} cannot store every name (its encoding is ${row?.encoding}): create it with createdb --encoding=UTF8 --template=template0`,
      );
    await expectEqualClocks(pool, name, clock);
  } catch (error) {
    throw openingFailure(error, name);
  }
}

async function expectEqualClocks(pool: Pool, name: string, clock: Clock): Promise<void> {
  const asked = clock.instant();
  const nowMs = await databaseTime(pool);
  const differenceMs = clock.now() - nowMs;
  // The answer itself was under way for a while.
  if (Math.abs(differenceMs) <= CLOCK_MS_MAX + elapsedMs(clock, asked)) return;
  const seconds = Math.round(Math.abs(differenceMs) / 1000);
  const side = differenceMs > 0 ? 'ahead of' : 'behind';
  throw new PostgresError(
    'unusable',
    `the clock of this machine is ${seconds} s ${side} that of ${name}: let NTP set both`,
  );
}
