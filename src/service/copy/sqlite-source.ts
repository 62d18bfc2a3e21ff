import { join } from 'node:path';
import { openDirectoryToRead } from '../directory/sqlite/database.ts';
import { blockPlaces } from '../storage/blocks/block-places.ts';
import { BlockStore } from '../storage/blocks/block-store.ts';
import { type BlockRow, Contents } from '../storage/blocks/contents.ts';
import { localDisk } from '../storage/blocks/disk.ts';
import { isCurrent, openExisting } from '../storage/storage-database.ts';
import { CopyError } from './copy-error.ts';
import type { CopySource, ServicePlace } from './sides.ts';
import { sqliteRows } from './sqlite-rows.ts';

/** Blocks that are looked up at once. */
const WINDOW_BLOCKS = 1000;

/**
 * Opens a data directory that no service has open, to copy it. Throws `DataDirectoryError`, and `CopyError` for one that an
 * older davgate has written.
 */
export async function openSqliteSource({
  dataDirectory,
  blocks: access,
}: Extract<ServicePlace, { dataDirectory: string }>): Promise<CopySource> {
  const database = openExisting(join(dataDirectory, 'storage.sqlite'));
  const opened = [database];
  const close = () => {
    for (const one of opened) one.close();
  };
  try {
    const directory = openDirectoryToRead(dataDirectory);
    opened.push(directory.database);
    if (!isCurrent(database) || !directory.isCurrent)
      throw new CopyError(
        `${dataDirectory} was written by an older davgate: start davgate service on it once, which upgrades it, and stop that`,
      );
    const setting = database.prepare<[string], unknown>('SELECT value FROM setting WHERE name = ?').pluck();
    const [tag, cursorKey] = [setting.get('tag'), setting.get('cursor-key')];
    if (typeof tag !== 'string' || !(cursorKey instanceof Buffer))
      throw new CopyError(`${dataDirectory} has no files of a service: nothing was ever stored there`);
    const contents = new Contents(database);
    const parts = { dataDirectory, disk: localDisk, contents, directoryTag: tag, access };
    const store = new BlockStore(await blockPlaces(parts), contents);
    const page = database.prepare<[after: number], BlockRow>(
      `SELECT id, hash, size AS sizeBytes, inline, coalesce(name, lower(hex(hash))) AS name
       FROM block LEFT JOIN block_name ON block_name.block = id
       WHERE inline = 0 AND id > ? ORDER BY id LIMIT ${WINDOW_BLOCKS}`,
    );
    return {
      name: dataDirectory,
      keys: { tag, cursorKey },
      storage: sqliteRows(database),
      directory: sqliteRows(directory.database),
      async *blocks() {
        for (let some = page.all(0); some.length > 0; some = page.all(some.at(-1)?.id ?? 0)) yield* some;
      },
      read: (block) => store.read(block),
      async refresh() {
        // A command may have changed an account meanwhile. The other database is locked.
        directory.database.exec(directory.database.inTransaction ? 'COMMIT; BEGIN' : 'BEGIN');
      },
      async close() {
        await store.close();
        close();
      },
    };
  } catch (failure) {
    close();
    throw failure;
  }
}
