import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Damage } from './damage.ts';
import { BYTES_OF_NAMESPACE, DERIVED, FILES_OF_HOLDING, WRONG_USES } from './rows.ts';

/** Damages that a repair removes. */
const REPAIRABLE: ReadonlySet<string> = new Set(Object.values(DERIVED));

/** Notes which counts are wrong: looking for them takes long, and others wait for the repair itself. */
const NOTE = `
  CREATE TEMP TABLE wrong_count AS
    ${WRONG_USES} UNION SELECT ns, content FROM holding WHERE files <> ${FILES_OF_HOLDING}`;

/** SQL: how many revisions have the content of a row of `holding`. */
const USES = `
  (SELECT count(*) FROM revision WHERE revision.ns = holding.ns AND revision.content = holding.content)
  + (SELECT count(*) FROM doomed WHERE doomed.ns = holding.ns AND doomed.content = holding.content)`;

/** A content that no revision has stays counted: it may be all that is left of a lost revision. */
const COUNTS = `
  INSERT INTO holding (ns, content, revisions, files)
    SELECT ns, content, 1, 0 FROM temp.wrong_count
    WHERE EXISTS (SELECT 1 FROM content WHERE id = wrong_count.content)
      AND NOT EXISTS (
        SELECT 1 FROM holding WHERE holding.ns = wrong_count.ns AND holding.content = wrong_count.content);
  UPDATE holding SET revisions = ${USES}, files = ${FILES_OF_HOLDING}
    WHERE (ns, content) IN (SELECT ns, content FROM temp.wrong_count) AND ${USES} > 0;
  UPDATE namespace SET used_bytes = ${BYTES_OF_NAMESPACE} WHERE used_bytes <> ${BYTES_OF_NAMESPACE}`;

const WORDS = `
  DELETE FROM word WHERE NOT EXISTS (SELECT 1 FROM json_each(words_of(name_key)) WHERE value = word.word);
  INSERT OR IGNORE INTO word
    SELECT item.ns, value, item.name_key
    FROM (SELECT ns, name_key FROM entry UNION SELECT ns, name_key FROM deletion WHERE NOT forgotten) AS item,
      json_each(words_of(item.name_key))`;

/** Runs `change`, which changes the database, in a transaction. */
export type InTransaction = (change: () => void) => Promise<void>;

/**
 * Yields the damages that a check of rows has `found`, those that could be made good from other rows as repaired ones.
 * `again` looks for such damages again.
 */
export async function* repaired(
  database: SqliteDatabase,
  found: Iterable<Damage>,
  again: () => Iterable<Damage>,
  inTransaction: InTransaction,
): AsyncGenerator<Damage, void, undefined> {
  const repairable: Damage[] = [];
  for (const damage of found) {
    if (REPAIRABLE.has(damage.what)) repairable.push(damage);
    else yield damage;
  }
  if (repairable.length === 0) return;
  database.exec(NOTE);
  const hasWords = repairable.some(({ what }) => what === DERIVED.lacksWord || what === DERIVED.otherWord);
  await inTransaction(() => {
    database.exec(COUNTS);
    if (hasWords) database.exec(WORDS);
  });
  database.exec('DROP TABLE temp.wrong_count');
  const left = new Map([...again()].map((damage) => [JSON.stringify(damage), damage]));
  yield* left.values();
  for (const damage of repairable)
    if (!left.has(JSON.stringify(damage))) yield { ...damage, isRepaired: true };
}
