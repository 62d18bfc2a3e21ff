import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { type Below, below, type EntryRow, notStaged } from './tree-rows.ts';

/** Everything at `key` and below it up to change number `seq` is removed, though its rows remain in the tables. */
export interface Removal {
  readonly ns: number;
  readonly key: string;
  readonly seq: number;
  readonly deletedMs: number;
  /** Whether the history is removed too. */
  readonly forever: number;
  /** Whether the files still exist at another path, and count there. */
  readonly moved: number;
  /** The table being cleared (0 entries, 1 deletions, 2 revisions), and the row after which to continue. */
  readonly phase: number;
  readonly atParent: string;
  readonly atName: string;
  readonly atNumber: number;
}

/** The place of a row. */
export type Placed = Pick<EntryRow, 'ns' | 'parent' | 'nameKey'>;

export type PlacedRevision = Placed & { readonly id: string; readonly number: number };

/** An entry, and the number of its last change. */
export type EntryPlace = Placed & { readonly id: string; readonly seq: number };

/** Returns the bounds of a removal's next rows. */
export function windowOf({ ns, key, atParent, atName, atNumber }: Removal, limit: number) {
  return { ns, to: below(ns, key).to, parent: atParent, nameKey: atName, number: atNumber, limit };
}

/** Returns the place of the top of a removed tree. */
export function topOf({ ns, key }: Removal): Placed {
  const start = key.lastIndexOf('/') + 1;
  return { ns, parent: key.slice(0, start), nameKey: key.slice(start) };
}

/** Prepared statements over removals and the rows they cover. */
export function removalStatements(database: SqliteDatabase) {
  type Window = ReturnType<typeof windowOf>;
  type Row = Placed & { id: string; seq: number };
  const removal = `
    SELECT seq, ns, key, deleted_ms AS deletedMs, forever, moved, phase, at_parent AS atParent, at_name AS atName,
      at_number AS atNumber
    FROM removal`;
  const COLUMNS = 'ns, parent, name_key AS nameKey';
  const window = (from: string, columns: string, position: string, order: string, more = '') =>
    `SELECT ${COLUMNS}, ${columns} FROM ${from}
     WHERE ns = @ns AND ${position} AND parent < @to ${more} ORDER BY ${order} LIMIT @limit`;
  const at = 'ns = @ns AND parent = @parent AND name_key = @nameKey';
  return {
    begin: database.prepare<[Omit<Removal, 'phase' | 'atName' | 'atNumber'>]>(
      `INSERT INTO removal (seq, ns, key, deleted_ms, forever, moved, phase, at_parent, at_name, at_number)
       VALUES (@seq, @ns, @key, @deletedMs, @forever, @moved, 0, @atParent, '', 0)`,
    ),
    goOn: database.prepare<[Placed & { seq: number; phase: number; number: number }]>(
      `UPDATE removal SET phase = @phase, at_parent = @parent, at_name = @nameKey, at_number = @number
       WHERE ns = @ns AND seq = @seq`,
    ),
    end: database.prepare<[ns: number, seq: number]>('DELETE FROM removal WHERE ns = ? AND seq = ?'),
    first: database.prepare<[], Removal>(`${removal} ORDER BY seq LIMIT 1`),
    any: database.prepare<[number]>('SELECT 1 FROM removal WHERE ns = ? LIMIT 1'),
    anyForever: database.prepare<[ns: number, before: number]>(
      'SELECT 1 FROM removal WHERE ns = ? AND forever AND seq < ? LIMIT 1',
    ),
    covering: database.prepare<[Pick<Removal, 'ns' | 'key' | 'seq' | 'forever'>], Removal>(
      `${removal} WHERE ns = @ns AND key = @key AND seq >= @seq AND forever >= @forever ORDER BY seq LIMIT 1`,
    ),
    entries: database.prepare<[Window], Row>(
      window(
        'entry',
        'id, seq',
        '(parent, name_key) > (@parent, @nameKey)',
        'parent, name_key',
        `AND ${notStaged('entry.seq')}`,
      ),
    ),
    deletions: database.prepare<[Window], Row & { forgotten: number }>(
      window(
        'deletion',
        'id, seq, forgotten',
        '(parent, name_key) > (@parent, @nameKey)',
        'parent, name_key',
      ),
    ),
    revisions: database.prepare<[Window], Placed & { number: number }>(
      window(
        'revision',
        'number',
        '(parent, name_key, number) > (@parent, @nameKey, @number)',
        'parent, name_key, number',
        `AND ${notStaged('revision.number')}`,
      ),
    ),
    deletionAt: database.prepare<[Placed], Row & { forgotten: number }>(
      `SELECT ${COLUMNS}, id, seq, forgotten FROM deletion WHERE ${at}`,
    ),
    revisionsAt: database.prepare<[Placed & { after: number; limit: number }], { number: number }>(
      `SELECT number FROM revision WHERE ${at} AND number > @after ORDER BY number LIMIT @limit`,
    ),
    formerRevisions: database.prepare<[id: string, limit: number], { ns: number; number: number }>(
      `SELECT ns, number FROM revision
       WHERE id = ? AND ${notStaged('revision.number')}
         AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.ns = revision.ns AND entry.revision = revision.number)
       ORDER BY number LIMIT ?`,
    ),
    revisionsElsewhere: database.prepare<
      [Placed & Below & { id: string; seq: number }],
      { ns: number; number: number }
    >(
      `SELECT ns, number FROM revision
       WHERE id = @id AND ${notStaged('revision.number')}
         AND NOT (number <= @seq AND ns = @ns
           AND (parent = @parent AND name_key = @nameKey OR parent >= @from AND parent < @to))`,
    ),
    entriesById: database.prepare<[string], Row>(
      `SELECT ${COLUMNS}, id, seq FROM entry WHERE id = ? AND ${notStaged('entry.seq')}`,
    ),
    deletionsById: database.prepare<[string], Row & { wasFolder: number }>(
      `SELECT ${COLUMNS}, id, seq, was_folder AS wasFolder FROM deletion WHERE id = ? AND NOT forgotten`,
    ),
    otherRevisions: database.prepare<[Placed & { id: string }], PlacedRevision>(
      `SELECT ${COLUMNS}, id, number FROM revision WHERE ${at} AND id <> @id AND ${notStaged('revision.number')}`,
    ),
    putDeletion: database.prepare<[Placed & { seq: number; deletedMs: number; forgotten: number }]>(
      `INSERT OR REPLACE INTO deletion
       SELECT ns, parent, name_key, name, path, id, @seq, revision IS NULL, 1, @forgotten, @deletedMs
       FROM entry WHERE ${at}`,
    ),
    contentAt: database.prepare<[Placed], { content: number }>(
      `SELECT content FROM revision WHERE ns = @ns AND number = (SELECT revision FROM entry WHERE ${at})`,
    ),
    dropEntry: database.prepare<[Placed]>(`DELETE FROM entry WHERE ${at}`),
    forget: database.prepare<[Placed]>(`UPDATE deletion SET forgotten = 1 WHERE ${at}`),
  };
}
