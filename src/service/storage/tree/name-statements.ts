import type { Statement } from 'better-sqlite3';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { type Below, type DeletionRow, type EntryRow, SELECT_DELETION, SELECT_ENTRY } from './tree-rows.ts';

export interface WordKey {
  readonly word: string;
  readonly nameKey: string;
}

export interface WordRow extends WordKey {
  readonly ns: number;
}

export interface Place {
  readonly parent: string;
  readonly nameKey: string;
}

/** A place in the order of changes, latest first. Numbers are a namespace's own, so a page may end between two equal ones. */
export interface ChangeKey {
  readonly before: number;
  readonly beforeNs: number;
}

/** A place in the order of changes of each folder. */
export interface ChildKey {
  readonly parent: string;
  readonly seq: number;
}

/** Texts that a name must contain; `''` is in every name. */
export interface Parts {
  readonly one: string;
  readonly two: string;
  readonly three: string;
}

interface Limit {
  readonly limit: number;
}

interface Count {
  readonly rows: number;
}

interface WordRange extends Limit {
  readonly ns: number;
  readonly word: string;
  readonly end: string;
}

type NameRange = Below & Limit & Parts & Place & { readonly end: string };
type ChangeRange = Below & Limit & Parts & ChangeKey;
type FolderRange = Below & Limit & Parts & ChildKey;

/** Statements over the names of live or of deleted items. `…End`: where the rows that a filtered scan reads end. */
export interface TableStatements {
  readonly named: Statement<
    [Limit & { ns: number; nameKey: string; after: string; to: string }],
    { parent: string }
  >;
  readonly namedLike: Statement<[NameRange], Place>;
  readonly namedLikeEnd: Statement<[NameRange], Place>;
  readonly changed: Statement<[ChangeRange], Place>;
  readonly changedEnd: Statement<[ChangeRange], { seq: number; ns: number }>;
  readonly inFolder: Statement<[FolderRange], Place>;
  readonly inFolderEnd: Statement<[FolderRange], ChildKey>;
  readonly countNamed: Statement<[WordRange], Count>;
  readonly countBelow: Statement<[Below & Limit], Count>;
  readonly row: Statement<[Place & { ns: number }], EntryRow | DeletionRow>;
}

const HAS_PARTS = 'instr(nameKey, @one) > 0 AND instr(nameKey, @two) > 0 AND instr(nameKey, @three) > 0';
const IN_RANGE = 'ns = @ns AND parent >= @from AND parent < @to';

/** SQL for the end of a page; no row when it is the last one. */
const pageEnd = (page: string) => `SELECT * FROM (${page}) LIMIT 1 OFFSET @limit - 1`;

/** Prepared statements over names and their words. Each reads along one index, and a bounded number of rows. */
export function nameStatements(database: SqliteDatabase) {
  const namesPage = `SELECT ns, word, name_key AS nameKey FROM word
    WHERE ns = @ns AND (word, name_key) > (@word, @nameKey) AND word < @end
    ORDER BY word, name_key LIMIT @limit`;
  return {
    add: database.prepare<[ns: number, word: string, nameKey: string]>(
      'INSERT OR IGNORE INTO word (ns, word, name_key) VALUES (?, ?, ?)',
    ),
    drop: database.prepare<[WordRow]>(
      'DELETE FROM word WHERE ns = @ns AND word = @word AND name_key = @nameKey',
    ),
    words: database.prepare<[WordRow & Limit], WordRow>(
      `SELECT ns, word, name_key AS nameKey FROM word
       WHERE (ns, word, name_key) > (@ns, @word, @nameKey) ORDER BY ns, word, name_key LIMIT @limit`,
    ),
    names: database.prepare<[WordRange & WordKey & Parts], WordRow>(
      `SELECT * FROM (${namesPage}) WHERE ${HAS_PARTS}`,
    ),
    namesEnd: database.prepare<[WordRange & WordKey & Parts], WordRow>(pageEnd(namesPage)),
    countNames: database.prepare<[WordRange], Count>(
      `SELECT count(*) AS rows FROM (
         SELECT 1 FROM word WHERE ns = @ns AND word >= @word AND word < @end LIMIT @limit)`,
    ),
    isUsed: database.prepare<[{ ns: number; nameKey: string }]>(
      `SELECT 1 FROM entry WHERE ns = @ns AND name_key = @nameKey
       UNION ALL SELECT 1 FROM deletion WHERE ns = @ns AND name_key = @nameKey AND NOT forgotten LIMIT 1`,
    ),
    entries: tableStatements(database, {
      table: 'entry',
      // One namespace.
      changes: 'entry INDEXED BY entry_change WHERE ns = @ns AND seq < @before',
      kept: 'true',
      select: SELECT_ENTRY,
    }),
    deletions: tableStatements(database, {
      table: 'deletion',
      // All namespaces, so that the number of rows it reads is bounded too.
      changes: 'deletion INDEXED BY deletion_kept WHERE NOT forgotten AND (seq, ns) < (@before, @beforeNs)',
      kept: 'NOT forgotten',
      select: SELECT_DELETION,
    }),
  };
}

function tableStatements(
  database: SqliteDatabase,
  names: { readonly table: string; readonly changes: string; readonly kept: string; readonly select: string },
): TableStatements {
  const { table, changes, kept, select } = names;
  const likePage = `SELECT ns, parent, name_key AS nameKey FROM ${table}
    WHERE ns = @ns AND (name_key, parent) > (@nameKey, @parent) AND name_key < @end AND ${kept}
    ORDER BY name_key, parent LIMIT @limit`;
  const changesPage = `SELECT ns, seq, parent, name_key AS nameKey FROM ${changes}
    ORDER BY seq DESC, ns DESC LIMIT @limit`;
  const folderPage = `SELECT ns, parent, seq, name_key AS nameKey FROM ${table} INDEXED BY ${table}_child_change
    WHERE ns = @ns AND (parent, seq) > (@parent, @seq) AND parent < @to ORDER BY parent, seq LIMIT @limit`;
  const wanted = (page: string) => `SELECT parent, nameKey FROM (${page}) WHERE ${IN_RANGE} AND ${HAS_PARTS}`;
  return {
    named: database.prepare(
      `SELECT parent FROM ${table} WHERE ns = @ns AND name_key = @nameKey AND parent > @after AND parent < @to
         AND ${kept} ORDER BY parent LIMIT @limit`,
    ),
    namedLike: database.prepare(wanted(likePage)),
    namedLikeEnd: database.prepare(pageEnd(likePage)),
    changed: database.prepare(wanted(changesPage)),
    changedEnd: database.prepare(pageEnd(changesPage)),
    inFolder: database.prepare(wanted(folderPage)),
    inFolderEnd: database.prepare(pageEnd(folderPage)),
    countNamed: database.prepare(
      `SELECT count(*) AS rows FROM (
         SELECT 1 FROM word CROSS JOIN ${table} ON ${table}.ns = word.ns AND ${table}.name_key = word.name_key
         WHERE word.ns = @ns AND word >= @word AND word < @end AND ${kept} LIMIT @limit)`,
    ),
    countBelow: database.prepare(
      `SELECT count(*) AS rows FROM (
         SELECT 1 FROM ${table} INDEXED BY ${table}_child_change WHERE ${IN_RANGE} LIMIT @limit)`,
    ),
    row: database.prepare(
      `${select} WHERE ${table}.ns = @ns AND ${table}.parent = @parent AND ${table}.name_key = @nameKey AND ${kept}`,
    ),
  };
}
