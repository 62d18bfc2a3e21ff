import { Sqlite, type SqliteDatabase } from './sqlite.ts';

/** The result of one change of a group. */
export type ChangeOutcome = { readonly value: unknown } | { readonly error: unknown };

export interface GroupOptions {
  /** Called before each change but the first; `true` leaves the rest of the group to a later transaction. */
  readonly isFull?: () => boolean;
  /** Called with the error of a change that was undone. An error that it throws makes the whole group fail. */
  readonly onUndone?: (error: unknown) => void;
  /** Writes the data of the transaction as a whole. */
  readonly beforeCommit?: () => void;
  /** Whether everything is undone at the end. */
  readonly isTrial?: boolean;
}

/**
 * Runs `changes` in order in one transaction, so that they share its fsync. A change that throws is undone alone. When
 * the transaction fails as a whole, as SQLite decides for a failing disk, all are undone and its error is thrown.
 * Returns the outcomes of the changes that ran, at least one.
 */
export function commitGroup(
  database: SqliteDatabase,
  changes: readonly (() => unknown)[],
  { isFull = () => false, onUndone = () => {}, beforeCommit = () => {}, isTrial = false }: GroupOptions = {},
): ChangeOutcome[] {
  const outcomes: ChangeOutcome[] = [];
  try {
    database.exec('BEGIN IMMEDIATE');
    for (const change of changes) {
      if (outcomes.length > 0 && isFull()) break;
      outcomes.push(outcomeOf(database, change, onUndone));
    }
    beforeCommit();
    database.exec(isTrial ? 'ROLLBACK' : 'COMMIT');
    return outcomes;
  } catch (error) {
    if (database.inTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function outcomeOf(
  database: SqliteDatabase,
  change: () => unknown,
  onUndone: (error: unknown) => void,
): ChangeOutcome {
  try {
    return { value: inSavepoint(database, change) };
  } catch (error) {
    // SQLite rolls back the whole transaction when the disk fails: then no change of the group may count.
    if (!database.inTransaction) throw error;
    onUndone(error);
    return { error };
  }
}

/** Runs `change` inside the open transaction, and undoes it if it fails. */
export function inSavepoint<T>(database: SqliteDatabase, change: () => T): T {
  database.exec('SAVEPOINT change');
  try {
    const result = change();
    database.exec('RELEASE change');
    return result;
  } catch (error) {
    // A full disk may have ended the whole transaction already.
    if (database.inTransaction) database.exec('ROLLBACK TO change; RELEASE change');
    throw error;
  }
}

/** Returns whether `error` comes from SQLite. */
export function isSqliteError(error: unknown): error is InstanceType<typeof Sqlite.SqliteError> {
  return error instanceof Sqlite.SqliteError;
}
