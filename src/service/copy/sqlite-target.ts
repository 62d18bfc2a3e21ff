import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../util/make-folder.ts';
import { writeSecret } from '../../util/secret-file.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { syncDirectory } from '../../util/sync-directory.ts';
import { openUnchecked } from '../directory/sqlite/database.ts';
import { blockPlaces } from '../storage/blocks/block-places.ts';
import { Contents } from '../storage/blocks/contents.ts';
import { localDisk } from '../storage/blocks/disk.ts';
import { openDatabase } from '../storage/storage-database.ts';
import { COPY_MARK, type CopyMark, copyMarkIn } from '../storage/unfinished-copy.ts';
import { CopiedBlocks, newCopyId } from './copied-blocks.ts';
import { CopyError, NotEmptyError } from './copy-error.ts';
import type { CopyTarget, FilledTables, ServiceKeys, ServicePlace } from './sides.ts';
import { sqliteRows } from './sqlite-rows.ts';
import { SqliteTables } from './sqlite-tables.ts';

/**
 * Opens an empty data directory, or one with an unfinished copy of the service with this tag. Throws `CopyError` for any
 * other one, and `DataDirectoryError` if another process has it open.
 */
export async function openSqliteTarget(
  { dataDirectory, blocks: access }: Extract<ServicePlace, { dataDirectory: string }>,
  tag: string,
): Promise<CopyTarget> {
  const mark = await markOf(dataDirectory, tag);
  const opened: SqliteDatabase[] = [];
  const close = () => {
    for (const one of opened) one.close();
  };
  try {
    const storage = await openDatabase(join(dataDirectory, 'storage.sqlite'));
    opened.push(storage);
    const directory = openUnchecked(dataDirectory);
    opened.push(directory);
    // No row has a name of a block yet that the bucket would have to have.
    const contents = new Contents(storage);
    for (const database of opened) database.pragma('foreign_keys = OFF');
    for (const database of opened) empty(database);
    const parts = { dataDirectory, disk: localDisk, contents, directoryTag: tag, access };
    const { folder, outer, incoming } = await blockPlaces(parts);
    await incoming.prepare();
    await folder.prepare();
    await outer?.prepare();
    const kept = new CopiedBlocks(outer ?? folder, incoming, outer ? mark.copyId : undefined);
    await kept.find().catch(async (failure: unknown) => {
      await outer?.close();
      throw failure;
    });
    return {
      name: dataDirectory,
      has: (block) => kept.has(block),
      keep: (block, bytes) => kept.keep(block, bytes),
      sync: () => kept.sync(),
      async fill(keys, work) {
        const tables = new SqliteTables(storage, directory, (hash) => kept.nameOf(hash));
        await inTransactions(opened, async () => {
          addSettings(storage, keys);
          const filled: FilledTables = {
            storage: sqliteRows(storage),
            directory: sqliteRows(directory),
            putNamespace: async (row) => tables.putNamespace(row),
            put: async (table, namespace, rows) => tables.put(table, namespace, rows),
            putInDirectory: async (table, rows) => tables.putInDirectory(table, rows),
          };
          await work(filled);
          for (const database of opened) expectReferences(database);
        });
        await rm(join(dataDirectory, COPY_MARK));
        await syncDirectory(dataDirectory);
      },
      async close() {
        await outer?.close();
        close();
      },
    };
  } catch (failure) {
    close();
    throw failure;
  }
}

/** Returns the mark of a data directory for a copy; makes both for a new one. Throws `CopyError`. */
async function markOf(dataDirectory: string, tag: string): Promise<CopyMark> {
  makeFolder(dataDirectory);
  const found = copyMarkIn(dataDirectory);
  if (found && found.tag !== tag)
    throw new CopyError(
      `${dataDirectory} has an unfinished copy of another service: end that one, or name an empty folder`,
    );
  if (found) return found;
  // The mark itself may have been about to be written.
  if (readdirSync(dataDirectory).some((name) => !name.startsWith(COPY_MARK)))
    throw new NotEmptyError(
      `${dataDirectory} is not empty: name an empty folder, or one that does not exist`,
    );
  const mark = { tag, copyId: newCopyId() };
  await writeSecret(join(dataDirectory, COPY_MARK), JSON.stringify(mark));
  return mark;
}

/** Removes what an earlier attempt has filled in, whose end it did not live to see. */
function empty(database: SqliteDatabase): void {
  const tables = database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all();
  database.transaction(() => {
    for (const table of tables) database.exec(`DELETE FROM ${table}`);
  })();
}

/** The first start looks for blocks that nothing refers to, which an earlier attempt may have left. */
function addSettings(storage: SqliteDatabase, { tag, cursorKey }: ServiceKeys): void {
  const add = storage.prepare('INSERT INTO setting (name, value) VALUES (?, ?)');
  add.run('tag', tag);
  add.run('cursor-key', cursorKey);
  add.run('closed', 0);
}

/** Runs `work` in a transaction of each database. */
async function inTransactions(
  databases: readonly SqliteDatabase[],
  work: () => Promise<void>,
): Promise<void> {
  for (const database of databases) database.exec('BEGIN IMMEDIATE');
  try {
    await work();
    for (const database of databases) database.exec('COMMIT');
  } finally {
    for (const database of databases) if (database.inTransaction) database.exec('ROLLBACK');
  }
}

/** Throws if a row refers to another one that is missing: the source is damaged. */
function expectReferences(database: SqliteDatabase): void {
  const [lost] = database.pragma('foreign_key_check') as readonly { table: string; parent: string }[];
  if (lost)
    throw new CopyError(
      `the source is damaged: a row of its table ${lost.table} refers to one of ${lost.parent} that is missing`,
    );
}
