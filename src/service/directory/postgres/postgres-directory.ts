import type { Pool } from 'pg';
import { silentLog } from '../../../util/log.ts';
import { openPool } from '../../postgres/connect.ts';
import { migrate } from '../../postgres/migrate.ts';
import type { Directory, OpenedDirectory } from '../directory.ts';
import { accountsIn } from './accounts.ts';
import { appsIn } from './apps.ts';
import { codesIn } from './codes.ts';
import { copyReferencesIn } from './copy-references.ts';
import { grantsIn } from './grants.ts';
import { guessRowsIn } from './guess-rows.ts';
import { itemRowsIn } from './item-rows.ts';
import { jobRowsIn } from './job-rows.ts';
import { linksIn } from './links.ts';
import { MIGRATIONS } from './migrations.ts';
import { nodesIn } from './nodes.ts';
import { signedInBrowsersIn } from './signed-in.ts';
import { tagsIn } from './tags.ts';
import { temporaryLinksIn } from './temporary-links.ts';
import { tokensIn } from './tokens.ts';

/**
 * Opens the directory in a database that several processes may share, and creates its tables if missing. Closing it
 * leaves the pool open, which is the caller's. Throws `PostgresError`.
 */
export async function openPostgresDirectory(pool: Pool): Promise<OpenedDirectory> {
  await migrate(pool, 'directory', MIGRATIONS);
  return { directory: directoryIn(pool), async close() {} };
}

/** Opens the directory in the database at `url` for the time of `work`. Throws `PostgresError`. */
export async function withSharedDirectory<Result>(
  url: string,
  work: (directory: Directory) => Promise<Result>,
): Promise<Result> {
  const pool = openPool(url, silentLog);
  try {
    const { directory, close } = await openPostgresDirectory(pool);
    try {
      return await work(directory);
    } finally {
      await close();
    }
  } finally {
    await pool.end();
  }
}

function directoryIn(pool: Pool): Directory {
  return {
    accounts: accountsIn(pool),
    apps: appsIn(pool),
    grants: grantsIn(pool),
    codes: codesIn(pool),
    tokens: tokensIn(pool),
    signedIn: signedInBrowsersIn(pool),
    guesses: guessRowsIn(pool),
    nodes: nodesIn(pool),
    jobRows: jobRowsIn(pool),
    links: linksIn(pool),
    temporaryLinks: temporaryLinksIn(pool),
    copyReferences: copyReferencesIn(pool),
    tags: tagsIn(pool),
    itemRows: (['links', 'tags', 'copy_references'] as const).map((table) => itemRowsIn(pool, table)),
  };
}
