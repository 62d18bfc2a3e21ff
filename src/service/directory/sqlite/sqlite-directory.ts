import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Directory, OpenedDirectory } from '../directory.ts';
import { accountsIn } from './accounts.ts';
import { appsIn } from './apps.ts';
import { codesIn } from './codes.ts';
import { copyReferencesIn } from './copy-references.ts';
import { openDatabase } from './database.ts';
import { grantRowsIn, grantsIn } from './grants.ts';
import { guessRowsIn } from './guess-rows.ts';
import { itemRowsIn } from './item-rows.ts';
import { jobRowsIn } from './job-rows.ts';
import { linksIn } from './links.ts';
import { nodesIn } from './nodes.ts';
import { signedInBrowsersIn } from './signed-in.ts';
import { tagsIn } from './tags.ts';
import { temporaryLinksIn } from './temporary-links.ts';
import { tokensIn } from './tokens.ts';

/** Opens the directory of a service's data, and creates it if missing. Throws `DataDirectoryError`. */
export function openSqliteDirectory(dataDirectory: string): OpenedDirectory {
  const database = openDatabase(dataDirectory);
  return {
    directory: directoryIn(database),
    async close() {
      database.close();
    },
  };
}

function directoryIn(database: SqliteDatabase): Directory {
  const grants = grantRowsIn(database);
  return {
    accounts: accountsIn(database),
    apps: appsIn(database),
    grants: grantsIn(database, grants),
    codes: codesIn(database, grants),
    tokens: tokensIn(database, grants),
    signedIn: signedInBrowsersIn(database),
    guesses: guessRowsIn(database),
    nodes: nodesIn(database),
    jobRows: jobRowsIn(database),
    links: linksIn(database),
    temporaryLinks: temporaryLinksIn(database),
    copyReferences: copyReferencesIn(database),
    tags: tagsIn(database),
    itemRows: (['links', 'tags', 'copy_references'] as const).map((table) => itemRowsIn(database, table)),
  };
}
