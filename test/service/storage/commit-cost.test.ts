import { tmpdir } from 'node:os';
import PQueue from 'p-queue';
import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { blockFolder } from '../../../src/service/storage/blocks/block-folder.ts';
import { localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { IncomingFiles } from '../../../src/service/storage/blocks/incoming-files.ts';
import { JointCommits } from '../../../src/service/storage/postgres/joint-commits.ts';
import { versionsIn } from '../../../src/service/storage/postgres/namespace-lookups.ts';
import { OpenNamespace } from '../../../src/service/storage/postgres/open-namespace.ts';
import { TABLES } from '../../../src/service/storage/postgres/tables.ts';
import { silentLog } from '../../../src/util/log.ts';
import type { SqliteDatabase } from '../../../src/util/sqlite/sqlite.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { plansOf } from './plans.ts';

/** Scans of tables that stay small however large a namespace is, and scans that stop after the first rows. */
const SHORT_SCAN =
  /^SCAN (\(subquery-\d+\)|noted_\w+|staging|doomed|block_name|removal USING INDEX removal_age|namespace\b.*|pragma_.*)$/;

test('no statement of a copy of a namespace reads a whole table, or makes an index of it, to find some rows', async () => {
  const pool = new Pool();
  const clock = new ManualClock();
  const open = (database: SqliteDatabase) =>
    new OpenNamespace(7, database, {
      ...{ pool, clock, log: silentLog, mintId: undefined },
      versions: versionsIn(pool),
      joint: new JointCommits(pool, clock),
      loads: new PQueue(),
      told: () => {},
      places: { incoming: new IncomingFiles(tmpdir(), localDisk), folder: blockFolder(tmpdir(), localDisk) },
      tag: '00000000',
      cursorKey: Buffer.alloc(32),
    });
  const plans = await plansOf(open, true);
  expect(plans.filter(([sql]) => sql.includes('FROM noted_'))).toHaveLength(TABLES.length);
  for (const [sql, plan] of plans) {
    const steps = plan.split('\n').filter((step) => /SCAN|AUTOMATIC/.test(step) && !SHORT_SCAN.test(step));
    expect(steps, sql).toEqual([]);
  }
});
