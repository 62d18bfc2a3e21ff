import type { MigrationProgress } from '../../../util/sqlite/migrations.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';

/** Contents counted between two progress reports: less than a second. */
const STEP_CONTENTS = 50_000;

interface Holding {
  readonly ns: number;
  readonly content: number;
}

/**
 * Counts the files of a namespace with each content. Each file counts for the quota; a content of history alone counts
 * once.
 */
export function* countFiles(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  database.exec('ALTER TABLE holding ADD COLUMN files INTEGER NOT NULL DEFAULT 0');
  const total = Number(database.prepare('SELECT count(*) FROM holding').pluck().get());
  const range = '(ns, content) > (@ns, @content)';
  const step = database.prepare<[Holding], Holding & { contents: number }>(
    `SELECT ns, content, count(*) OVER () AS contents
     FROM (SELECT ns, content FROM holding WHERE ${range} ORDER BY ns, content LIMIT ${STEP_CONTENTS})
     ORDER BY ns DESC, content DESC LIMIT 1`,
  );
  const count = database.prepare<[Holding & { lastNs: number; lastContent: number }]>(
    `UPDATE holding SET files = (
       SELECT count(*) FROM revision JOIN entry ON entry.revision = revision.number
       WHERE revision.ns = holding.ns AND revision.content = holding.content)
     WHERE ${range} AND (ns, content) <= (@lastNs, @lastContent)`,
  );
  let after: Holding = { ns: 0, content: 0 };
  let done = 0;
  for (let last = step.get(after); last; last = step.get(after)) {
    count.run({ ...after, lastNs: last.ns, lastContent: last.content });
    after = { ns: last.ns, content: last.content };
    done += last.contents;
    yield { what: 'quota', unit: 'contents', done, total };
  }
  database.exec(`
    UPDATE namespace SET used_bytes = (
      SELECT coalesce(sum(size * max(files, 1)), 0) FROM holding JOIN content ON content.id = holding.content
      WHERE holding.ns = namespace.id)`);
}
