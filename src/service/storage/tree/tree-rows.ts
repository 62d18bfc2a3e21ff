import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { revOf } from '../feed/ticks.ts';
import type { Stored, StoredDeletion, StoredFile, StoredFolder } from '../storage.ts';

/** The place of a current or former item, and its identity. */
interface Located {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
  readonly name: string;
  readonly path: string;
  readonly id: string;
}

/** A live file or folder. The last five columns are of its revision, `null` for a folder. */
export interface EntryRow extends Located {
  readonly seq: number;
  readonly revision: number | null;
  /** Of a folder: whether something was deleted at its place before. */
  readonly returned: number;
  readonly content: number | null;
  readonly hash: string | null;
  readonly sizeBytes: number | null;
  readonly clientMs: number | null;
  readonly serverMs: number | null;
}

export interface DeletionRow extends Located {
  readonly seq: number;
  readonly wasFolder: number;
  readonly implied: number;
  readonly forgotten: number;
  readonly deletedMs: number;
}

export interface RevisionRow extends Located {
  readonly number: number;
  readonly content: number;
  readonly hash: string;
  readonly sizeBytes: number;
  readonly clientMs: number;
  readonly serverMs: number;
}

/** SQL condition that hides rows of a large move or copy in progress: their numbers are reserved. */
export function notStaged(number: 'entry.seq' | 'revision.number'): string {
  const [table] = number.split('.');
  return `NOT EXISTS (SELECT 1 FROM staging
    WHERE NOT published AND staging.ns = ${table}.ns AND ${number} BETWEEN staging.first AND staging.last)`;
}

/** SELECT of `EntryRow`s. A WHERE clause follows, in which `entry` is the table. */
export const SELECT_ENTRY = `
  SELECT entry.ns, entry.parent, entry.name_key AS nameKey, entry.name, entry.path, entry.id, entry.seq,
    entry.revision, entry.returned, revision.content, content.hash, content.size AS sizeBytes,
    revision.client_ms AS clientMs, revision.server_ms AS serverMs
  FROM (SELECT * FROM entry WHERE ${notStaged('entry.seq')}) AS entry
    LEFT JOIN revision ON revision.ns = entry.ns AND revision.number = entry.revision
    LEFT JOIN content ON content.id = revision.content`;

export const SELECT_DELETION = `
  SELECT ns, parent, name_key AS nameKey, name, path, id, seq, was_folder AS wasFolder, implied, forgotten,
    deleted_ms AS deletedMs
  FROM (
    SELECT * FROM deletion WHERE NOT EXISTS (
      -- A large move or copy has put an entry there; the deletion is about to be cleared away.
      SELECT 1 FROM staging CROSS JOIN entry AS arrived ON arrived.ns = deletion.ns
        AND arrived.parent = deletion.parent AND arrived.name_key = deletion.name_key
      WHERE published AND staging.ns = deletion.ns AND arrived.seq BETWEEN staging.first AND staging.last)) AS deletion`;

const SELECT_REVISION = `
  SELECT number, ns, parent, name_key AS nameKey, name, path, revision.id, content, content.hash,
    content.size AS sizeBytes, client_ms AS clientMs, server_ms AS serverMs
  FROM (SELECT * FROM revision WHERE ${notStaged('revision.number')}) AS revision
    JOIN content ON content.id = revision.content`;

/** Returns the whole path's key: `path_lower` in the API. */
export function keyOf(row: { readonly parent: string; readonly nameKey: string }): string {
  return row.parent + row.nameKey;
}

/** Returns a live entry as `Storage` presents it. */
export function storedOf(row: EntryRow, directoryTag: string): Stored {
  return row.revision === null ? storedFolder(row) : storedFile(row, directoryTag);
}

export function storedFolder(row: EntryRow): StoredFolder {
  const { id, name, path } = row;
  return { kind: 'folder', id, name, pathLower: keyOf(row), pathDisplay: path };
}

/** Returns a live file as `Storage` presents it. */
export function storedFile(row: EntryRow, directoryTag: string): StoredFile {
  // The joined columns of a file are never null: its revision and content exist as long as it does.
  return storedRevision({ ...row, number: row.revision } as RevisionRow, directoryTag);
}

/** Returns a revision as the file it was, at its former path. */
export function storedRevision(row: RevisionRow, directoryTag: string): StoredFile {
  return {
    kind: 'file',
    id: row.id,
    name: row.name,
    pathLower: keyOf(row),
    pathDisplay: row.path,
    rev: revOf(row.number, directoryTag),
    sizeBytes: row.sizeBytes,
    contentHash: row.hash,
    clientModifiedMs: row.clientMs,
    serverModifiedMs: row.serverMs,
  };
}

export function storedDeletion(row: DeletionRow): StoredDeletion {
  return {
    kind: 'deleted',
    name: row.name,
    pathLower: keyOf(row),
    pathDisplay: row.path,
    restorable: !row.wasFolder && !row.forgotten,
  };
}

/** Prepared statements over the entries, the deletions and the history. */
export function treeStatements(database: SqliteDatabase) {
  type At = [ns: number, parent: string, nameKey: string];
  return {
    find: database.prepare<At, EntryRow>(
      `${SELECT_ENTRY} WHERE entry.ns = ? AND entry.parent = ? AND entry.name_key = ?`,
    ),
    // While a move is being cleared away, its former place has the id too.
    findById: database.prepare<[string], EntryRow>(
      `${SELECT_ENTRY} WHERE entry.id = ? ORDER BY entry.seq DESC`,
    ),
    findDeletion: database.prepare<At, DeletionRow>(
      `${SELECT_DELETION} WHERE ns = ? AND parent = ? AND name_key = ?`,
    ),
    findDeletionById: database.prepare<[string], DeletionRow>(
      `${SELECT_DELETION} WHERE id = ? AND NOT forgotten ORDER BY seq DESC LIMIT 1`,
    ),
    findRevision: database.prepare<[ns: number, number: number], RevisionRow>(
      `${SELECT_REVISION} WHERE ns = ? AND number = ?`,
    ),
    below: database.prepare<
      [{ ns: number; to: string; parent: string; nameKey: string; limit: number }],
      EntryRow
    >(
      `${SELECT_ENTRY}
       WHERE entry.ns = @ns AND (entry.parent, entry.name_key) > (@parent, @nameKey) AND entry.parent < @to
       ORDER BY entry.parent, entry.name_key LIMIT @limit`,
    ),
    put: database.prepare<
      [
        {
          ns: number;
          parent: string;
          nameKey: string;
          name: string;
          path: string;
          id: string;
          seq: number;
          revision: number | null;
        },
      ]
    >(
      `INSERT OR REPLACE INTO entry (ns, parent, name_key, name, path, id, seq, revision, returned)
       VALUES (@ns, @parent, @nameKey, @name, @path, @id, @seq, @revision, @revision IS NULL AND EXISTS (
         SELECT 1 FROM deletion WHERE ns = @ns AND parent = @parent AND name_key = @nameKey))`,
    ),
    drop: database.prepare<At>('DELETE FROM entry WHERE ns = ? AND parent = ? AND name_key = ?'),
    putDeletion: database.prepare<
      [{ ns: number; parent: string; nameKey: string; seq: number; deletedMs: number }]
    >(
      `INSERT OR REPLACE INTO deletion
       SELECT ns, parent, name_key, name, path, id, @seq, revision IS NULL, 0, 0, @deletedMs FROM entry
       WHERE ns = @ns AND parent = @parent AND name_key = @nameKey`,
    ),
    dropDeletion: database.prepare<At>('DELETE FROM deletion WHERE ns = ? AND parent = ? AND name_key = ?'),
    addRevision: database.prepare<
      [
        {
          number: number;
          ns: number;
          parent: string;
          nameKey: string;
          name: string;
          path: string;
          id: string;
          content: number;
          clientMs: number;
          serverMs: number;
        },
      ]
    >(
      `INSERT INTO revision (number, ns, parent, name_key, name, path, id, content, client_ms, server_ms)
       VALUES (@number, @ns, @parent, @nameKey, @name, @path, @id, @content, @clientMs, @serverMs)`,
    ),
    revisionsAt: database.prepare<[...At, before: number, limit: number], RevisionRow>(
      `${SELECT_REVISION} WHERE ns = ? AND parent = ? AND name_key = ? AND number < ?
       ORDER BY number DESC LIMIT ?`,
    ),
    revisionsOf: database.prepare<[id: string, before: number, limit: number], RevisionRow>(
      `${SELECT_REVISION} WHERE revision.id = ? AND number < ? ORDER BY number DESC LIMIT ?`,
    ),
  };
}

/** The range of everything below a folder in the primary key; each `parent` ends with a slash. */
export interface Below {
  readonly ns: number;
  readonly from: string;
  readonly to: string;
}

/** Returns the range of everything below a key; `''` is the root. */
export function below(ns: number, key: string): Below {
  // '0' is the character after '/', so this range has all keys that begin with `key/`.
  return { ns, from: `${key}/`, to: `${key}0` };
}
