import { foldName } from '../../../util/path.ts';
import type { MigrationProgress } from '../../../util/sqlite/migrations.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { alternatives } from '../tree/places.ts';

/** Rows examined between two progress reports: less than a second. */
const STEP_ROWS = 50_000;

/** Items rekeyed between two progress reports: less than a second. */
const MOVED_AT_ONCE = 5000;

/** SQL: the row's key is not the current key of its path. */
const CHANGED = 'folded(parent || name_key) <> parent || name_key';

interface Row {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
  readonly name: string;
  readonly path: string;
}

type Key = Pick<Row, 'ns' | 'parent' | 'nameKey'>;

interface LiveRow extends Row {
  readonly revision: number | null;
}

/**
 * Gives every item the current key of its path. An older folding left seven letters with a mark (`J̌` for one) in a
 * form that no request could find. Where two names turn out to be equal, the one that could not be found is renamed as
 * by autorename. Cursors start over, because they refer to keys.
 */
export function* rekey(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  database.function('folded', { deterministic: true }, (text) => foldName(String(text)));
  const rows = (table: string) => Number(database.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
  const total = rows('entry') + rows('deletion') + rows('revision');
  let done = 0;
  const progress = (more: number): MigrationProgress => {
    done += more;
    return { what: 'keys of names', unit: 'rows', done, total };
  };
  const entries: LiveRow[] = [];
  for (const { changed, looked } of changedRows<LiveRow>(database, 'entry', 'revision')) {
    for (const row of changed) entries.push(row);
    yield progress(looked);
  }
  const paths = new Map<string, string>();
  // In this order a folder precedes its contents.
  for (const [index, row] of entries.entries()) {
    paths.set(keyIn(row), moveEntry(database, row, paths));
    if (index % MOVED_AT_ONCE === MOVED_AT_ONCE - 1) yield progress(0);
  }
  const deletions: Row[] = [];
  for (const { changed, looked } of changedRows<Row>(database, 'deletion', 'seq')) {
    for (const row of changed) deletions.push(row);
    yield progress(looked);
  }
  for (const [index, row] of deletions.entries()) {
    moveDeletion(database, row);
    if (index % MOVED_AT_ONCE === MOVED_AT_ONCE - 1) yield progress(0);
  }
  let isAffected = entries.length > 0;
  for (const { changes, looked } of rekeyedRevisions(database)) {
    isAffected ||= changes > 0;
    yield progress(looked);
  }
  if (!isAffected) return;
  database.exec(`
    UPDATE setting SET value = value + 1 WHERE name = 'tick';
    UPDATE namespace SET horizon = (SELECT value FROM setting WHERE name = 'tick')`);
}

/**
 * Yields the rows of a table with outdated keys, ordered by the old keys, in steps with the number of rows examined.
 */
function* changedRows<T extends Row>(
  database: SqliteDatabase,
  table: 'entry' | 'deletion',
  column: string,
): Generator<{ readonly changed: readonly T[]; readonly looked: number }, void, undefined> {
  const page = `SELECT ns, parent, name_key, name, path, ${column} FROM ${table}
    WHERE (ns, parent, name_key) > (@ns, @parent, @nameKey) ORDER BY ns, parent, name_key LIMIT ${STEP_ROWS}`;
  const find = database.prepare<[Key], T>(
    `SELECT ns, parent, name_key AS nameKey, name, path, ${column} FROM (${page}) WHERE ${CHANGED}`,
  );
  const end = database.prepare<[Key], Key & { looked: number }>(
    `SELECT ns, parent, name_key AS nameKey, count(*) OVER () AS looked FROM (${page})
     ORDER BY ns DESC, parent DESC, name_key DESC LIMIT 1`,
  );
  let after: Key = { ns: 0, parent: '', nameKey: '' };
  for (let last = end.get(after); last; last = end.get(after)) {
    yield { changed: find.all(after), looked: last.looked };
    after = { ns: last.ns, parent: last.parent, nameKey: last.nameKey };
  }
}

/** Gives the new keys to revisions that are not current, in steps. */
function* rekeyedRevisions(
  database: SqliteDatabase,
): Generator<{ readonly changes: number; readonly looked: number }, void, undefined> {
  const end = database.prepare<[number], { last: number | null; looked: number }>(
    `SELECT max(number) AS last, count(*) AS looked FROM (
       SELECT number FROM revision WHERE number > ? ORDER BY number LIMIT ${STEP_ROWS})`,
  );
  const rekeyed = database.prepare<[number, number]>(
    `UPDATE revision SET parent = folded(parent), name_key = folded(name_key)
     WHERE number > ? AND number <= ? AND ${CHANGED}
       AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.revision = revision.number)`,
  );
  for (let after = 0; ; ) {
    const { last = null, looked = 0 } = end.get(after) ?? {};
    if (last === null) return;
    yield { changes: rekeyed.run(after, last).changes, looked };
    after = last;
  }
}

function keyIn({ ns, parent, nameKey }: Row): string {
  return `${ns} ${parent}${nameKey}`;
}

/** Moves an entry to its new key. The path also changes if the entry or its folder was renamed. */
function moveEntry(database: SqliteDatabase, row: LiveRow, paths: ReadonlyMap<string, string>): string {
  const { ns, revision } = row;
  const folder =
    paths.get(`${ns} ${row.parent.slice(0, -1)}`) ?? row.path.slice(0, row.path.lastIndexOf('/'));
  const parent = `${foldName(folder)}/`;
  const isFree = (name: string) =>
    database
      .prepare('SELECT 1 FROM entry WHERE ns = ? AND parent = ? AND name_key = ?')
      .get(ns, parent, foldName(name)) === undefined;
  const name = isFree(row.name) ? row.name : firstFree(row, isFree);
  const place = { ns, parent, nameKey: foldName(name), name, path: `${folder}/${name}` };
  const set = 'SET parent = @parent, name_key = @nameKey, name = @name, path = @path';
  database
    .prepare(`UPDATE entry ${set} WHERE ns = @ns AND parent = @oldParent AND name_key = @oldKey`)
    .run({ ...place, oldParent: row.parent, oldKey: row.nameKey });
  database.prepare(`UPDATE revision ${set} WHERE number = @revision`).run({ ...place, revision });
  database
    .prepare('DELETE FROM deletion WHERE ns = @ns AND parent = @parent AND name_key = @nameKey')
    .run(place);
  return place.path;
}

function firstFree({ name, revision }: LiveRow, isFree: (name: string) => boolean): string {
  for (const other of alternatives(name, revision === null ? 'folder' : 'file'))
    if (isFree(other)) return other;
  throw new Error(`no name is free beside ${JSON.stringify(name)}`);
}

/** Moves a deletion to its new key, or drops it where a live entry or a later deletion exists. */
function moveDeletion(database: SqliteDatabase, { ns, parent, nameKey }: Row): void {
  const from = {
    ns,
    oldParent: parent,
    oldKey: nameKey,
    parent: foldName(parent),
    nameKey: foldName(nameKey),
  };
  const isTaken = database
    .prepare(
      `SELECT 1 FROM entry WHERE ns = @ns AND parent = @parent AND name_key = @nameKey
       UNION ALL SELECT 1 FROM deletion AS other WHERE ns = @ns AND parent = @parent AND name_key = @nameKey
         AND seq > (SELECT seq FROM deletion WHERE ns = @ns AND parent = @oldParent AND name_key = @oldKey)`,
    )
    .get(from);
  const where = 'ns = @ns AND parent = @oldParent AND name_key = @oldKey';
  if (isTaken) database.prepare(`DELETE FROM deletion WHERE ${where}`).run(from);
  else
    database
      .prepare(`UPDATE OR REPLACE deletion SET parent = @parent, name_key = @nameKey WHERE ${where}`)
      .run(from);
}
