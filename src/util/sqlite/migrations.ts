import type { SqliteDatabase } from './sqlite.ts';

/** How far a migration has come. */
export interface MigrationProgress {
  /** What is migrated: `index`. */
  readonly what: string;
  /** What is counted: `names`. */
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

/** A newer program has taken steps that this one does not know. */
export class NewerSchema extends Error {
  override readonly name = 'NewerSchema';

  constructor(
    readonly version: number,
    readonly knownVersion: number,
  ) {
    super(`the database has schema ${version}; this program knows ${knownVersion}`);
  }
}

/** How many steps `database` has taken (`PRAGMA user_version`). Throws `NewerSchema` when `migrations` has fewer. */
export function schemaVersion(database: SqliteDatabase, migrations: readonly Migration[]): number {
  const version = Number(database.pragma('user_version', { simple: true }));
  if (version > migrations.length) throw new NewerSchema(version, migrations.length);
  return version;
}

/** Takes the missing steps of `migrations`, all in one transaction. Throws `NewerSchema`. */
export function migrate(database: SqliteDatabase, migrations: readonly Migration[]): void {
  const pieces = migrateInPieces(database, migrations);
  while (!pieces.next().done);
}

/**
 * As `migrate`, in pieces between which the caller may let other events in. A process that ends before the last piece
 * leaves the database as it was.
 */
export function* migrateInPieces(
  database: SqliteDatabase,
  migrations: readonly Migration[],
): Generator<MigrationProgress | undefined, void, undefined> {
  // The write lock is what finds another process that has the database open.
  database.exec('BEGIN IMMEDIATE');
  try {
    const version = schemaVersion(database, migrations);
    for (const step of migrations.slice(version)) {
      if (typeof step === 'string') database.exec(step);
      else yield* step(database) ?? [];
      yield undefined;
    }
    // Opening writes nothing without need: it must succeed on a full disk.
    if (version < migrations.length) database.pragma(`user_version = ${migrations.length}`);
    database.exec('COMMIT');
  } finally {
    if (database.open && database.inTransaction) database.exec('ROLLBACK');
  }
}
