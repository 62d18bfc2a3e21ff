import { LRUCache } from 'lru-cache';
import { keyOf, type Path, relocate } from '../../util/path.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { type LocalFile, type LocalFileStore, LocalFileTooLarge } from '../local-files.ts';
import type { Commits } from './commits.ts';
import { type KeyRange, parentKeyOf, WITHIN, within } from './key-range.ts';

/** Maximum size of a local file, in bytes. AppleDouble files with a resource fork are the largest seen. */
export const LOCAL_FILE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Maximum size of all local files of a drive, in bytes, each with its overhead and its path. Beyond it the oldest are
 * removed.
 */
export const LOCAL_FILES_BYTES_MAX = 1024 * 1024 * 1024;

/**
 * Bytes that each file counts beside its content. More than its rows need: it limits the number of files to 250,000,
 * however small they are, because a change of all files stops everything else meanwhile.
 */
const OVERHEAD_BYTES = 4096;

/** How often a row and its indexes contain the path of the file. */
const PATH_COPIES = 4;

/** Maximum number of files that one change forgets. */
const FORGOTTEN_MAX = 1_000;

/** Maximum number of folders and files whose listings are in memory: at most 10 MB. */
const LISTED_MAX = 20_000;

interface Row extends LocalFile {
  readonly position: number;
}

/**
 * Local files, with metadata and content in two tables, so that listings read no content. The tables keep their first
 * names, `asides` and `aside_contents`. The total size is in memory, because each change needs it, and so are the folders
 * listed since the last change: each PROPFIND asks for them. `bytesMax`: maximum size of all local files of the drive.
 */
export function sqliteLocalFiles(
  database: SqliteDatabase,
  drive: number,
  commits: Commits,
  bytesMax: number,
): LocalFileStore {
  const statements = prepare(database, drive);
  const listed = new LRUCache<string, readonly LocalFile[]>({
    maxSize: LISTED_MAX,
    sizeCalculation: (files) => 1 + files.length,
  });
  let totalBytes = 0;
  commits.mirror(() => {
    totalBytes = statements.totalBytes();
    listed.clear();
  });

  const change = (work: () => void) =>
    commits.run(() => {
      listed.clear();
      work();
    });

  const remove = (row: Row) => {
    statements.remove(row.position);
    totalBytes -= usageOf(row);
  };
  const makeRoom = () => {
    while (totalBytes > bytesMax) {
      const oldest = statements.oldest();
      if (!oldest) return;
      remove(oldest);
    }
  };

  return {
    fileBytesMax: LOCAL_FILE_BYTES_MAX,
    get: async (path) => fileOf(statements.get(path)),
    read: async (path) => statements.read(path),
    async in(folder) {
      const key = keyOf(folder);
      const known = listed.get(key);
      if (known) return known;
      const files = statements.in(key).map((row) => fileOf(row));
      listed.set(key, files);
      return files;
    },
    within: async (path, filesMax) => statements.within(path, filesMax).map((row) => fileOf(row)),
    put: (file, content) =>
      change(() => {
        if (content.byteLength > LOCAL_FILE_BYTES_MAX)
          throw new LocalFileTooLarge(`a local file may have at most ${LOCAL_FILE_BYTES_MAX} bytes`);
        const old = statements.get(file.path);
        if (old) remove(old);
        const stored = { ...file, sizeBytes: content.byteLength };
        statements.insert(stored, content);
        totalBytes += usageOf(stored);
        makeRoom();
      }),
    touch: (path, modifiedMs) => change(() => void statements.touch(path, modifiedMs)),
    async forget(path) {
      const ids: string[] = [];
      while (statements.lastWithin(path, 1).length > 0)
        await change(() => {
          for (const row of statements.lastWithin(path, FORGOTTEN_MAX)) {
            remove(row);
            ids.push(row.id);
          }
        });
      return ids;
    },
    move: (from, to) =>
      change(() => {
        const moving = statements.within(from);
        for (const { position } of moving) statements.lift(position);
        statements.within(to).forEach(remove);
        for (const row of moving) {
          const path = relocate(row.path, from, to);
          statements.place(row.position, path);
          totalBytes += usageOf({ ...row, path }) - usageOf(row);
        }
        makeRoom();
      }),
    copy: (from, to, newId) =>
      change(() => {
        if (keyOf(from) === keyOf(to)) return;
        const copies = statements
          .within(from)
          .map((row) => ({ position: statements.insertCopy(row, newId()), row }));
        statements.within(to).forEach(remove);
        for (const { position, row } of copies) {
          const path = relocate(row.path, from, to);
          statements.place(position, path);
          totalBytes += usageOf({ ...row, path });
        }
        makeRoom();
      }),
  };
}

/** Returns what a file counts toward the limit, in bytes. */
function usageOf({ sizeBytes, path }: LocalFile): number {
  return sizeBytes + OVERHEAD_BYTES + PATH_COPIES * Buffer.byteLength(path);
}

function fileOf(row: Row): LocalFile;
function fileOf(row: Row | undefined): LocalFile | undefined;
function fileOf(row: Row | undefined): LocalFile | undefined {
  if (!row) return undefined;
  const { position: _, ...file } = row;
  return file;
}

/** A negative LIMIT of SQLite is none. */
const NO_LIMIT = -1;

function prepare(database: SqliteDatabase, drive: number) {
  const columns = 'position, path, id, rev, modified_ms AS modifiedMs, size_bytes AS sizeBytes';
  const get = database.prepare<[number, string], Row>(
    `SELECT ${columns} FROM asides WHERE drive = ? AND key = ?`,
  );
  const read = database.prepare<[number, string], { content: Buffer }>(
    'SELECT content FROM asides JOIN aside_contents USING (position) WHERE drive = ? AND key = ?',
  );
  const inFolder = database.prepare<[number, string], Row>(
    `SELECT ${columns} FROM asides WHERE drive = ? AND parent_key = ? ORDER BY key`,
  );
  type Range = KeyRange & { readonly drive: number; readonly filesMax: number };
  const below = database.prepare<[Range], Row>(
    `SELECT ${columns} FROM asides WHERE drive = @drive AND ${WITHIN} ORDER BY key LIMIT @filesMax`,
  );
  const lastBelow = database.prepare<[Range], Row>(
    `SELECT ${columns} FROM asides WHERE drive = @drive AND ${WITHIN} ORDER BY key DESC LIMIT @filesMax`,
  );
  const oldest = database.prepare<[number], Row>(
    `SELECT ${columns} FROM asides WHERE drive = ? ORDER BY position LIMIT 1`,
  );
  const totalBytes = database.prepare<[number], { bytes: number }>(
    `SELECT coalesce(sum(size_bytes + ${OVERHEAD_BYTES} + ${PATH_COPIES} * length(CAST(path AS BLOB))), 0) AS bytes
     FROM asides WHERE drive = ?`,
  );
  const changes = prepareChanges(database, drive);
  return {
    ...changes,
    get: (path: Path) => get.get(drive, keyOf(path)),
    read: (path: Path) => read.get(drive, keyOf(path))?.content,
    in: (folderKey: string) => inFolder.all(drive, folderKey),
    within: (path: Path, filesMax = NO_LIMIT) => below.all({ drive, filesMax, ...within(path) }),
    lastWithin: (path: Path, filesMax: number) => lastBelow.all({ drive, filesMax, ...within(path) }),
    oldest: () => oldest.get(drive),
    totalBytes: () => totalBytes.get(drive)?.bytes ?? 0,
  };
}

function prepareChanges(database: SqliteDatabase, drive: number) {
  const insert = database.prepare(
    `INSERT INTO asides (drive, key, parent_key, path, id, rev, modified_ms, size_bytes)
     VALUES (@drive, @key, @parentKey, @path, @id, @rev, @modifiedMs, @sizeBytes)`,
  );
  const insertContent = database.prepare('INSERT INTO aside_contents (position, content) VALUES (?, ?)');
  const copyContent = database.prepare(
    'INSERT INTO aside_contents (position, content) SELECT ?, content FROM aside_contents WHERE position = ?',
  );
  // No key starts like this, so a lifted file is at no path.
  const lift = database.prepare(`UPDATE asides SET key = 'lifted ' || position WHERE position = ?`);
  const place = database.prepare('UPDATE asides SET key = ?, parent_key = ?, path = ? WHERE position = ?');
  const touch = database.prepare('UPDATE asides SET modified_ms = ? WHERE drive = ? AND key = ?');
  const remove = database.prepare('DELETE FROM asides WHERE position = ?');

  const insertRow = (file: LocalFile, key: string) =>
    Number(insert.run({ ...file, drive, key, parentKey: parentKeyOf(file.path) }).lastInsertRowid);

  return {
    insert(file: LocalFile, content: Uint8Array): void {
      insertContent.run(insertRow(file, keyOf(file.path)), content);
    },
    /** Inserts a copy of `row` at no path, and returns its position. */
    insertCopy(row: Row, id: string): number {
      const position = insertRow({ ...row, id }, `copy of ${row.position}`);
      copyContent.run(position, row.position);
      return position;
    },
    lift: (position: number) => lift.run(position),
    place: (position: number, path: Path) => place.run(keyOf(path), parentKeyOf(path), path, position),
    touch: (path: Path, modifiedMs: number) => touch.run(modifiedMs, drive, keyOf(path)),
    remove: (position: number) => remove.run(position),
  };
}
