import type { SqliteDatabase } from './sqlite.ts';

/** Progress of a migration. */
export interface MigrationProgress {
  /** The object of the migration, for example `index`. */
  readonly what: string;
  /** The unit of the counts, for example `names`. */
  readonly unit: string;
  readonly done: number;
  readonly total: number;
}

/**
 * One step of a schema. A step that rewrites many rows is a function that yields after each piece of about a second.
 * A released step is never edited: a change of the schema is a new step at the end of the list.
 */
export type Migration =
  | string
  | ((database: SqliteDatabase) => void)
  | ((database: SqliteDatabase) => Iterable<MigrationProgress>);

/** The database has steps of a newer program. */
export class NewerSchema extends Error {
  override readonly name = 'NewerSchema';

  constructor(
    readonly version: number,
    readonly knownVersion: number,
  ) {
    super(`the database has schema ${version}; this program knows ${knownVersion}`);
  }
}

/**
 * Returns the number of steps that `database` has taken (`PRAGMA user_version`). Throws `NewerSchema` when `migrations`
 * has fewer.
 */
export function schemaVersion(database: SqliteDatabase, migrations: readonly Migration[]): number {
  const version = Number(database.pragma('user_version', { simple: true }));
  if (version > migrations.length) throw new NewerSchema(version, migrations.length);
  return version;
}

/** Applies the missing steps of `migrations`, all in one transaction. Throws `NewerSchema`. */
export function migrate(database: SqliteDatabase, migrations: readonly Migration[]): void {
  const pieces = migrateInPieces(database, migrations);
  while (!pieces.next().done);
}

/**
 * Like `migrate`, in pieces between which the caller may handle other events. A process that ends before the last piece
 * leaves the database unchanged.
 */
export function* migrateInPieces(
  database: SqliteDatabase,
  migrations: readonly Migration[],
): Generator<MigrationProgress | undefined, void, undefined> {
  // Taking the write lock fails if another process has the database open.
  database.exec('BEGIN IMMEDIATE');
  try {
    const version = schemaVersion(database, migrations);
    for (const step of migrations.slice(version)) {
      if (typeof step === 'string') database.exec(step);
      else yield* step(database) ?? [];
      yield undefined;
    }
    // Opening a current database writes nothing: it must succeed on a full disk.
    if (version < migrations.length) database.pragma(`user_version = ${migrations.length}`);
    database.exec('COMMIT');
  } finally {
    if (database.open && database.inTransaction) database.exec('ROLLBACK');
  }
}
