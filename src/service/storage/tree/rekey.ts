import { foldName } from '../../../util/path.ts';
import type { Database } from '../database.ts';
import { alternatives } from './names.ts';

interface Row {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
  readonly name: string;
  readonly path: string;
}

interface LiveRow extends Row {
  readonly revision: number | null;
}

/**
 * Gives every item the key that its path has by now. Folding once left seven letters with a mark (`J̌` for one) in a form
 * under which no request could find them. Where two names turn out to be one, the one that could not be found gets
 * another name, as autorename gives it. Readers of changes start over, as keys are what they know items by.
 */
export function rekey(database: Database): void {
  database.function('folded', { deterministic: true }, (text) => foldName(String(text)));
  const changed = 'folded(parent || name_key) <> parent || name_key';
  const columns = 'ns, parent, name_key AS nameKey, name, path';
  const entries = database
    .prepare<[], LiveRow>(
      `SELECT ${columns}, revision FROM entry WHERE ${changed} ORDER BY ns, parent, name_key`,
    )
    .all();
  const paths = new Map<string, string>();
  // In this order a folder comes before what is in it.
  for (const row of entries) paths.set(keyIn(row), moveEntry(database, row, paths));
  for (const row of database.prepare<[], Row>(`SELECT ${columns} FROM deletion WHERE ${changed}`).all())
    moveDeletion(database, row);
  const isAffected = database
    .prepare(
      `UPDATE revision SET parent = folded(parent), name_key = folded(name_key)
     WHERE ${changed} AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.revision = revision.number)`,
    )
    .run().changes;
  if (entries.length + isAffected === 0) return;
  database.exec(`
    UPDATE setting SET value = value + 1 WHERE name = 'tick';
    UPDATE namespace SET horizon = (SELECT value FROM setting WHERE name = 'tick')`);
}

function keyIn({ ns, parent, nameKey }: Row): string {
  return `${ns} ${parent}${nameKey}`;
}

/** The entry's path afterwards: its folder may have got another name, or itself. */
function moveEntry(database: Database, row: LiveRow, paths: ReadonlyMap<string, string>): string {
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

/** A deletion ends where something is, or was deleted later. */
function moveDeletion(database: Database, { ns, parent, nameKey }: Row): void {
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
