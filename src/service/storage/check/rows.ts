import { BLOCK_BYTES } from '../../../util/content-hash.ts';
import { errorCodeOf } from '../../../util/error-code.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { hashOfBlocks } from '../blocks/staging.ts';
import { placeOf } from '../tree/places.ts';
import type { Owners } from './block-owners.ts';
import { type Damage, rowDamage } from './damage.ts';

/** Maximum number of messages of SQLite's own check, and of damaged rows of one kind. */
const REPORTED_MAX = 100;

interface Found {
  readonly namespace: string | null;
  readonly path: string | null;
  /** Content of a damage that costs files their bytes. */
  readonly content?: number;
}

const AT = `(SELECT name FROM namespace WHERE id = ns) AS namespace, path`;
const NOWHERE = 'NULL AS namespace, NULL AS path';

/** SQL: the row belongs to a large move or copy that is unfinished or not cleared away. */
const ARRIVED = `EXISTS (
  SELECT 1 FROM staging WHERE staging.ns = entry.ns AND entry.seq BETWEEN staging.first AND staging.last)`;

/** SQL: whether the first removal that covers the row was a move; NULL when none covers it. */
const TAKEN_BY_MOVE = `(
  SELECT moved FROM removal WHERE removal.ns = entry.ns AND removal.seq >= entry.seq
    AND entry.parent >= removal.key || '/' AND entry.parent < removal.key || '0' ORDER BY removal.seq LIMIT 1)`;

/** SQL: the row is hidden, because its large move or copy is not published. */
const STAGED = `EXISTS (
  SELECT 1 FROM staging WHERE NOT published AND staging.ns = entry.ns
    AND entry.seq BETWEEN staging.first AND staging.last)`;

/** SQL: the file is being moved or was moved, and counts at the other path. */
const COUNTED_ELSEWHERE = `(
  EXISTS (
    SELECT 1 FROM staging WHERE NOT copies AND NOT published AND staging.ns = entry.ns
      AND entry.seq BETWEEN staging.first AND staging.last)
  OR coalesce(${TAKEN_BY_MOVE}, 0))`;

/** SQL: the index of words is complete. The first start after an upgrade completes it. */
const HAS_WORDS = '(SELECT user_version FROM pragma_user_version) >= 8';

/** Damages of rows that can be made from others, without a loss. */
export const DERIVED = {
  uses: 'the use count of its content is wrong',
  files: 'the file count of its content is wrong',
  space: 'its used space is wrong',
  lacksWord: 'search does not find it by one of its words',
  otherWord: 'the word index lists it under a word that is not in its name',
} as const;

/** SQL: contents whose uses are counted wrongly. */
export const WRONG_USES = `
  SELECT ns, content FROM (
    SELECT ns, content, 1 AS held, 0 AS counted FROM revision
    UNION ALL SELECT ns, content, 1, 0 FROM doomed
    UNION ALL SELECT ns, content, 0, revisions FROM holding) AS used
  GROUP BY ns, content HAVING sum(held) <> sum(counted)`;

/** SQL: how many files a row of `holding` stands for, and how many bytes a row of `namespace` has. */
export const FILES_OF_HOLDING = `(
  SELECT count(*) FROM revision JOIN entry ON entry.ns = revision.ns AND entry.revision = revision.number
  WHERE revision.ns = holding.ns AND revision.content = holding.content AND NOT ${COUNTED_ELSEWHERE})`;
export const BYTES_OF_NAMESPACE = `(
  SELECT coalesce(sum(size * max(files, 1)), 0) FROM holding JOIN content ON content.id = content WHERE ns = namespace.id)`;

/** Queries that find nothing in a sound database, by the meaning of a result. */
const QUERIES: Readonly<Record<string, string>> = {
  'it exists and is deleted at the same time': `SELECT ${AT.replace('ns)', 'entry.ns)').replace('path', 'entry.path')}
    FROM entry JOIN deletion USING (ns, parent, name_key) WHERE NOT ${ARRIVED}`,
  'its parent folder is missing': `
    SELECT ${AT} FROM entry WHERE parent <> '/' AND NOT EXISTS (
      SELECT 1 FROM entry AS folder WHERE folder.ns = entry.ns AND folder.revision IS NULL
        AND folder.parent || folder.name_key || '/' = entry.parent)
      AND NOT EXISTS (
        SELECT 1 FROM removal WHERE removal.ns = entry.ns AND removal.seq >= entry.seq
          AND entry.parent >= removal.key || '/' AND entry.parent < removal.key || '0')
      AND NOT ${ARRIVED}`,
  'another entry has the same id': `
    SELECT ${AT} FROM (
      SELECT min(ns) AS ns, min(path) AS path FROM entry
      WHERE NOT ${STAGED} AND ${TAKEN_BY_MOVE} IS NULL GROUP BY id HAVING count(*) > 1)`,
  'another entry has the same change number': `
    SELECT ${AT} FROM (
      SELECT min(ns) AS ns, min(path) AS path FROM entry GROUP BY entry.ns, seq HAVING count(*) > 1)`,
  'its revision is missing': `
    SELECT ${AT} FROM entry WHERE revision IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM revision WHERE revision.ns = entry.ns AND number = entry.revision)`,
  'it differs from its revision': `
    SELECT (SELECT name FROM namespace WHERE id = entry.ns) AS namespace, entry.path
    FROM entry JOIN revision ON revision.ns = entry.ns AND number = entry.revision
    WHERE entry.parent <> revision.parent OR entry.name_key <> revision.name_key
      OR entry.id <> revision.id OR entry.path <> revision.path OR entry.seq <> number`,
  'the content of one of its revisions is missing': `
    SELECT ${AT} FROM revision WHERE NOT EXISTS (SELECT 1 FROM content WHERE id = revision.content)`,
  [DERIVED.lacksWord]: `
    SELECT ${AT} FROM (SELECT ns, name_key, path FROM entry
      UNION ALL SELECT ns, name_key, path FROM deletion WHERE NOT forgotten) AS item
    WHERE ${HAS_WORDS} AND EXISTS (SELECT 1 FROM json_each(words_of(item.name_key)) WHERE NOT EXISTS (
      SELECT 1 FROM word WHERE word.ns = item.ns AND word.word = value AND word.name_key = item.name_key))
    LIMIT ${REPORTED_MAX}`,
  [DERIVED.otherWord]: `
    SELECT (SELECT name FROM namespace WHERE id = ns) AS namespace, name_key AS path FROM word
    WHERE NOT EXISTS (SELECT 1 FROM json_each(words_of(name_key)) WHERE value = word.word)
    LIMIT ${REPORTED_MAX}`,
  'its last change is later than the last counted change': `
    SELECT ${AT} FROM (SELECT ns, path, seq FROM entry UNION ALL SELECT ns, path, seq FROM deletion
      UNION ALL SELECT ns, path, number FROM revision) AS change
    WHERE seq > (SELECT tick FROM namespace WHERE id = ns) AND NOT EXISTS (
      SELECT 1 FROM staging WHERE NOT published AND staging.ns = change.ns AND seq BETWEEN first AND last)`,
  'its blocks do not have its size': `
    SELECT ${NOWHERE}, id AS content FROM content WHERE size <> (
      SELECT coalesce(sum(block.size), 0) FROM content_block JOIN block ON block.id = block
      WHERE content = content.id)`,
  'one of its blocks is missing from its list': `
    SELECT ${NOWHERE}, content FROM content_block
    GROUP BY content HAVING max(position) <> count(*) - 1 OR min(position) <> 0`,
  'a block before its last one is not 4 MiB long': `
    SELECT DISTINCT ${NOWHERE}, content FROM content_block JOIN block ON block.id = block
    WHERE block.size <> ${BLOCK_BYTES} AND EXISTS (
      SELECT 1 FROM content_block AS next
      WHERE next.content = content_block.content AND next.position > content_block.position)`,
  [DERIVED.uses]: `
    SELECT DISTINCT (SELECT name FROM namespace WHERE id = ns) AS namespace,
      coalesce((SELECT path FROM revision WHERE revision.ns = used.ns AND revision.content = used.content LIMIT 1), '(no file)') AS path
    FROM (${WRONG_USES}) AS used`,
  [DERIVED.files]: `
    SELECT DISTINCT (SELECT name FROM namespace WHERE id = ns) AS namespace,
      (SELECT path FROM revision WHERE revision.ns = holding.ns AND revision.content = holding.content LIMIT 1) AS path
    FROM holding WHERE files <> ${FILES_OF_HOLDING}`,
  [DERIVED.space]: `
    SELECT name AS namespace, '' AS path FROM namespace WHERE used_bytes <> ${BYTES_OF_NAMESPACE}`,
  'an unfinished upload session does not have its size': `
    SELECT ${NOWHERE} FROM session WHERE NOT concurrent AND size <> (
      SELECT coalesce(sum(block.size), 0) FROM session_piece JOIN block ON block.id = block
      WHERE session = session.id)`,
  'a content belongs to no file (it only takes space)': `
    SELECT ${NOWHERE} FROM content WHERE id NOT IN (SELECT content FROM holding)
      AND (SELECT value FROM setting WHERE name = 'closed') = 1`,
  'a block belongs to no file and no upload (it only takes space)': `
    SELECT ${NOWHERE} FROM block WHERE id NOT IN (SELECT block FROM content_block)
      AND id NOT IN (SELECT block FROM session_piece)`,
  'cursors cannot be checked: the key or the tag of the service is missing or has another form': `
    SELECT ${NOWHERE} WHERE NOT EXISTS (
      SELECT 1 FROM setting WHERE name = 'cursor-key' AND typeof(value) = 'blob' AND length(value) = 32)
    OR NOT EXISTS (
      SELECT 1 FROM setting WHERE name = 'tag' AND length(value) = 8 AND value NOT GLOB '*[^0-9a-f]*')`,
  'cursors are refused: the history of changes begins in the future': `
    SELECT name AS namespace, '' AS path FROM namespace
    WHERE horizon > tick`,
};

/** Yields the damages of the database's rows, as far as they show without reading blocks. */
export function* rowDamages(database: SqliteDatabase, owners: Owners): Generator<Damage, void, undefined> {
  yield* guarded(() => pragmaDamages(database));
  for (const what of Object.keys(QUERIES)) yield* guarded(() => found(database, owners, what));
  yield* guarded(() => contentDamages(database, owners));
  for (const table of ['entry', 'deletion', 'revision']) yield* guarded(() => nameDamages(database, table));
}

/** Yields the damages of rows that can be made from others. */
export function* derivedDamages(
  database: SqliteDatabase,
  owners: Owners,
): Generator<Damage, void, undefined> {
  for (const what of Object.values(DERIVED)) yield* guarded(() => found(database, owners, what));
}

/** Turns a failure of one check into a damage, so that a damaged page does not end the others. */
export function* guarded(check: () => Iterable<Damage>): Generator<Damage, void, undefined> {
  try {
    yield* check();
  } catch (failure) {
    if (!errorCodeOf(failure).startsWith('SQLITE_')) throw failure;
    yield rowDamage(`the database cannot be read (${errorCodeOf(failure)})`);
  }
}

/** Yields the results of SQLite's own checks. */
function* pragmaDamages(database: SqliteDatabase): Generator<Damage> {
  const rows = database.pragma(`integrity_check(${REPORTED_MAX})`) as { integrity_check: string }[];
  for (const { integrity_check: message } of rows)
    if (message !== 'ok') yield rowDamage(`the database is damaged: ${message}`);
  const lost = database.pragma('foreign_key_check') as { table: string; rowid: unknown; parent: string }[];
  for (const { table, rowid, parent } of lost.slice(0, REPORTED_MAX))
    yield rowDamage(`row ${rowid ?? '?'} of table ${table} refers to a row of ${parent} that is missing`);
  if (lost.length > REPORTED_MAX)
    yield rowDamage(`${lost.length - REPORTED_MAX} more rows refer to rows that are missing`);
}

function* found(database: SqliteDatabase, owners: Owners, what: string): Generator<Damage> {
  const sql = QUERIES[what] ?? '';
  for (const { namespace, path, content } of database.prepare<[], Found>(sql).iterate()) {
    if (content !== undefined) yield owners.ofContent(what, content);
    else yield rowDamage(what, namespace === null ? undefined : { namespace, path: path ?? '?' });
  }
}

/** Yields contents whose hash does not match their blocks. */
function* contentDamages(database: SqliteDatabase, owners: Owners): Generator<Damage> {
  const blocks = database.prepare<[number], { hash: Buffer }>(
    'SELECT hash FROM content_block JOIN block ON block.id = block WHERE content = ? ORDER BY position',
  );
  for (const { id, hash } of database
    .prepare<[], { id: number; hash: string }>('SELECT id, hash FROM content')
    .iterate())
    if (hashOfBlocks(blocks.all(id)) !== hash)
      yield owners.ofContent('its content hash is not that of its blocks', id);
}

interface NamedRow {
  readonly namespace: string | null;
  readonly parent: string;
  readonly nameKey: string;
  readonly name: string;
  readonly path: string;
}

/** Yields rows whose key does not match their path, so that lookups cannot find them. */
function* nameDamages(database: SqliteDatabase, table: string): Generator<Damage> {
  const rows = database.prepare<[], NamedRow>(
    `SELECT (SELECT name FROM namespace WHERE id = ns) AS namespace, parent, name_key AS nameKey, name, path FROM ${table}`,
  );
  for (const row of rows.iterate()) {
    if (!isFound(row))
      yield rowDamage('it is not where its path says', { namespace: row.namespace ?? '?', path: row.path });
  }
}

function isFound({ parent, nameKey, name, path }: NamedRow): boolean {
  try {
    const place = placeOf(path, 'lookup');
    return place?.parent === parent && place.nameKey === nameKey && place.names.at(-1) === name;
  } catch {
    return false;
  }
}
