import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openSqliteToRead } from '../../util/sqlite/open.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { ACCOUNTS_FILE } from '../directory/sqlite/database.ts';
import type { Damage } from '../storage/check/damage.ts';
import { type CheckedStorage, type CheckProgress, checkStorage } from '../storage/check/storage-check.ts';
import { DataDirectoryError } from '../storage/errors.ts';
import type { CheckedSharedService } from './shared-check.ts';

export type { CheckProgress } from '../storage/check/storage-check.ts';

/** A line of a check. */
export interface CheckLine {
  readonly text: string;
  /** Whether what it tells has been repaired. */
  readonly isRepaired: boolean;
}

/**
 * Reads every block and every row of a service's data, changes nothing unless it `repairs`, and yields a line for each
 * damage: one for each file that loses bytes, or for each row. Throws `DataDirectoryError` when there is no directory or a
 * service has it open, and `PostgresError` for a database that cannot be reached or is none of a service.
 */
export async function* checkService(
  checked: CheckedStorage | CheckedSharedService,
  onProgress: (progress: CheckProgress) => void,
): AsyncGenerator<CheckLine, void, undefined> {
  if ('metadata' in checked) {
    // Few services need what this loads.
    const { checkSharedService } = await import('./shared-check.ts');
    for await (const { damage, emails } of checkSharedService(checked, onProgress))
      yield* linesOf(damage, emails);
    return;
  }
  const { damages, emails } = accountsAt(checked.dataDirectory);
  try {
    for await (const damage of checkStorage(checked, onProgress)) yield* linesOf(damage, emails);
  } catch (failure) {
    if (!(failure instanceof DataDirectoryError) || failure.reason !== 'damaged') throw failure;
    yield { text: failure.message, isRepaired: false };
  }
  for (const text of damages) yield { text, isRepaired: false };
}

function* linesOf(
  damage: Damage,
  emails: ReadonlyMap<string, string>,
): Generator<CheckLine, void, undefined> {
  const { isRepaired = false } = damage;
  const ownerOf = (namespace: string) => emails.get(namespace) ?? `namespace ${namespace}`;
  for (const text of textsOf(damage, ownerOf))
    yield { text: isRepaired ? `${text} (repaired)` : text, isRepaired };
}

function* textsOf({ what, at, files, moreFiles }: Damage, ownerOf: (namespace: string) => string) {
  for (const { namespace, path, rev, state } of files)
    yield `${ownerOf(namespace)}:${path} (${state}, rev ${rev}): ${what}`;
  if (moreFiles > 0) yield `… and ${moreFiles} more revisions: ${what}`;
  if (files.length > 0) return;
  yield at ? `${ownerOf(at.namespace)}:${at.path}: ${what}` : what;
}

/** Returns the teams; none from a database that is older than they are. */
function teamsIn(database: SqliteDatabase): { namespace: string; name: string }[] {
  const table = database.prepare<[], unknown>("SELECT 1 FROM sqlite_schema WHERE name = 'teams'");
  if (table.get() === undefined) return [];
  return database.prepare<[], { namespace: string; name: string }>('SELECT namespace, name FROM teams').all();
}

/** Checks the accounts' database, and returns whose each namespace is. */
function accountsAt(dataDirectory: string): { damages: string[]; emails: Map<string, string> } {
  const file = join(dataDirectory, ACCOUNTS_FILE);
  const emails = new Map<string, string>();
  if (!existsSync(file))
    return { damages: [`${ACCOUNTS_FILE} is missing: no account can be reached`], emails };
  let database: SqliteDatabase | undefined;
  try {
    database = openSqliteToRead(file, { isShared: true });
    database.pragma('query_only = ON');
    const accounts = database.prepare<[], { namespace: string; email: string }>(
      'SELECT namespace, email FROM accounts',
    );
    for (const { namespace, email } of accounts.iterate()) emails.set(namespace, email);
    for (const { namespace, name } of teamsIn(database)) emails.set(namespace, `team ${name}`);
    const integrity = database.pragma('integrity_check(100)') as { integrity_check: string }[];
    const lost = database.pragma('foreign_key_check') as { table: string; parent: string }[];
    return {
      damages: [
        ...integrity
          .filter(({ integrity_check: message }) => message !== 'ok')
          .map(({ integrity_check: message }) => `${ACCOUNTS_FILE} is damaged: ${message}`),
        ...lost.map(
          ({ table, parent }) =>
            `${ACCOUNTS_FILE}: a row of table ${table} refers to one of ${parent} that is missing`,
        ),
      ],
      emails,
    };
  } catch (failure) {
    return { damages: [`${ACCOUNTS_FILE} cannot be read: ${String(failure)}`], emails };
  } finally {
    database?.close();
  }
}
