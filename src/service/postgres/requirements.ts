import type { Pool } from 'pg';
import { type Clock, elapsedMs, systemClock } from '../../util/clock.ts';
import { databaseName } from './connect.ts';
import { openingFailure, PostgresError } from './errors.ts';
import { findRow } from './queries.ts';

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

interface FoundRow {
  /** A setting that must not be off. */
  readonly off: string | null;
  readonly encoding: string;
}

/**
 * Throws `PostgresError` for a database that may lose what it has acknowledged, cannot store every name, or whose clock
 * and that of this machine differ.
 */
export async function expectReliable(pool: Pool, clock: Clock = systemClock): Promise<void> {
  const name = databaseName(pool);
  try {
    const row = await findRow<FoundRow>(
      pool,
      `SELECT current_setting('server_encoding') AS encoding,
         (SELECT name FROM pg_catalog.pg_settings WHERE name = ANY($1) AND setting = 'off' LIMIT 1) AS off`,
      Object.keys(WHEN_OFF),
    );
    const { off, encoding } = row ?? {};
    if (off) throw new PostgresError('unusable', `${name} ${WHEN_OFF[off]}`);
    if (encoding !== 'UTF8')
      throw new PostgresError(
        'unusable',
        `${name} cannot store every name (its encoding is ${encoding}): create it with createdb --encoding=UTF8 --template=template0`,
      );
    await expectEqualClocks(pool, name, clock);
  } catch (error) {
    throw openingFailure(error, name);
  }
}

async function expectEqualClocks(pool: Pool, name: string, clock: Clock): Promise<void> {
  const asked = clock.instant();
  const row = await findRow<{ nowMs: number }>(
    pool,
    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "nowMs"`,
  );
  const differenceMs = clock.now() - (row?.nowMs ?? 0);
  // The answer itself was under way for a while.
  if (Math.abs(differenceMs) <= CLOCK_MS_MAX + elapsedMs(clock, asked)) return;
  const seconds = Math.round(Math.abs(differenceMs) / 1000);
  const side = differenceMs > 0 ? 'ahead of' : 'behind';
  throw new PostgresError(
    'unusable',
    `the clock of this machine is ${seconds} s ${side} that of ${name}: let NTP set both`,
  );
}
