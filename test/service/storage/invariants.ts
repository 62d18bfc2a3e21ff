import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';

/** Queries that find nothing in a sound data directory, by the defect that a row means. */
const NOTHING: Record<string, string> = {
  'a path is live and deleted': `SELECT parent, name_key FROM entry JOIN deletion USING (ns, parent, name_key)
    WHERE NOT EXISTS (SELECT 1 FROM staging WHERE staging.ns = entry.ns AND entry.seq BETWEEN first AND last)`,
  'an entry has no folder': `
    SELECT path FROM entry WHERE parent <> '/' AND NOT EXISTS (
      SELECT 1 FROM entry AS folder WHERE folder.ns = entry.ns AND folder.revision IS NULL
        AND folder.parent || folder.name_key || '/' = entry.parent)
      AND NOT EXISTS (
        SELECT 1 FROM removal WHERE removal.ns = entry.ns AND removal.seq >= entry.seq
          AND entry.parent >= removal.key || '/' AND entry.parent < removal.key || '0')
      AND NOT EXISTS (SELECT 1 FROM staging WHERE NOT published AND staging.ns = entry.ns AND entry.seq BETWEEN first AND last)`,
  'an entry differs from its revision': `
    SELECT entry.path FROM entry JOIN revision ON revision.ns = entry.ns AND number = entry.revision
    WHERE entry.id <> revision.id OR entry.path <> revision.path OR entry.seq <> number`,
  'an entry has no revision': `
    SELECT path FROM entry WHERE revision IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM revision WHERE revision.ns = entry.ns AND number = entry.revision)`,
  'contents are counted wrongly': `
    SELECT ns, content, sum(held), sum(counted) FROM (
      SELECT ns, content, 1 AS held, 0 AS counted FROM revision
      UNION ALL SELECT ns, content, 1, 0 FROM doomed
      UNION ALL SELECT ns, content, 0, revisions FROM holding)
    GROUP BY ns, content HAVING sum(held) <> sum(counted)`,
  'the files of a content are counted wrongly': `
    SELECT ns, content FROM holding WHERE files <> (
      SELECT count(*) FROM entry JOIN revision ON revision.ns = entry.ns AND number = entry.revision
      WHERE revision.ns = holding.ns AND revision.content = holding.content
        AND NOT EXISTS (
          SELECT 1 FROM staging WHERE NOT copies AND NOT published AND staging.ns = entry.ns AND entry.seq BETWEEN first AND last)
        AND NOT coalesce((
          SELECT moved FROM removal WHERE removal.ns = entry.ns AND removal.seq >= entry.seq
            AND entry.parent >= removal.key || '/' AND entry.parent < removal.key || '0'
          ORDER BY removal.seq LIMIT 1), 0))`,
  'two entries have one id': `
    SELECT id FROM entry
    WHERE NOT EXISTS (SELECT 1 FROM staging WHERE NOT published AND staging.ns = entry.ns AND entry.seq BETWEEN first AND last)
      AND NOT EXISTS (
        SELECT 1 FROM removal WHERE removal.ns = entry.ns AND removal.seq >= entry.seq
          AND entry.parent >= removal.key || '/' AND entry.parent < removal.key || '0')
    GROUP BY id HAVING count(*) > 1`,
  'a content is held by nothing': `SELECT id FROM content WHERE id NOT IN (SELECT content FROM holding)`,
  'a block is needed by nothing': `
    SELECT id FROM block
    WHERE id NOT IN (SELECT block FROM content_block) AND id NOT IN (SELECT block FROM session_piece)`,
  'usage is wrong': `
    SELECT name, used_bytes FROM namespace WHERE used_bytes <> (
      SELECT coalesce(sum(size * max(files, 1)), 0) FROM holding JOIN content ON content.id = content WHERE ns = namespace.id)`,
  'a content has another size than its blocks': `
    SELECT id FROM content WHERE size <> (
      SELECT coalesce(sum(block.size), 0) FROM content_block JOIN block ON block.id = block WHERE content = content.id)`,
  'a small block has no bytes': `
    SELECT id FROM block WHERE inline <> (SELECT count(*) FROM block_bytes WHERE block = block.id)`,
};

/**
 * Expects a closed data directory to be sound: a consistent database, and files for exactly its blocks, or objects of the
 * names in `bucket`.
 */
export function expectSound(dataDirectory: string, bucket: readonly string[] = []): void {
  const database = new Sqlite(join(dataDirectory, 'storage.sqlite'));
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(database.pragma('foreign_key_check')).toEqual([]);
    for (const [meaning, query] of Object.entries(NOTHING))
      expect(database.prepare(query).all(), meaning).toEqual([]);
    const names = database
      .prepare(
        `SELECT coalesce(block_name.name, lower(hex(hash)))
         FROM block LEFT JOIN block_name ON block = id WHERE NOT inline`,
      )
      .pluck()
      .all();
    expect([...readdirSync(join(dataDirectory, 'blocks')), ...bucket].sort()).toEqual(names.sort());
    expect(readdirSync(join(dataDirectory, 'incoming'))).toEqual([]);
  } finally {
    database.close();
  }
}
