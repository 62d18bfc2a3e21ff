import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MIGRATIONS } from '../../src/state/sqlite/migrations.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import { openDatabase } from '../../src/state/sqlite/state-database.ts';
import { ROOT } from '../../src/util/path.ts';
import { path } from '../support/paths.ts';

/** `J̌` in the key that an earlier version used, decomposed. The key of its small letter has always been composed. */
const OUTDATED = 'j\u030c';
const SMALL = '\u01f0';

/** Placeholders and local files as the first version stored them, with their paths and now outdated keys. */
const FILES = [
  { path: `/Docs/${SMALL}.txt`, key: `/docs/${SMALL}.txt`, parentKey: '/docs' },
  { path: '/Docs/J\u030c.txt', key: `/docs/${OUTDATED}.txt`, parentKey: '/docs' },
  { path: `/Docs/${SMALL} (1).txt`, key: `/docs/${SMALL} (1).txt`, parentKey: '/docs' },
  { path: '/J\u030c/alone', key: `/${OUTDATED}/alone`, parentKey: `/${OUTDATED}` },
];

/** Creates a state directory with one drive at version `steps` of the schema. */
function oldDirectory(steps: number): string {
  const directory = mkdtempSync(join(tmpdir(), 'davgate-rekey-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const old = openDatabase(directory, MIGRATIONS.slice(0, steps));
  old.exec(`INSERT INTO drives (name) VALUES ('d')`);
  const hold = old.prepare(
    `INSERT INTO holds (drive, key, parent_key, path, id, rev, modified_ms, until_ms)
     VALUES (1, @key, @parentKey, @path, 'held:' || @path, 'r', 1, 1)`,
  );
  const aside = old.prepare(
    `INSERT INTO asides (drive, key, parent_key, path, id, rev, modified_ms, size_bytes)
     VALUES (1, @key, @parentKey, @path, @path, 'r', 1, 3)`,
  );
  const content = old.prepare('INSERT INTO aside_contents SELECT position, ? FROM asides WHERE path = ?');
  for (const file of FILES) {
    hold.run(file);
    aside.run(file);
    content.run(Buffer.from(file.path), file.path);
  }
  old.close();
  return directory;
}

/** The former path of each file, by its path after the migration. */
const KEPT = {
  [`/Docs/${SMALL}.txt`]: `/Docs/${SMALL}.txt`,
  '/Docs/J\u030c (2).txt': '/Docs/J\u030c.txt',
  [`/Docs/${SMALL} (1).txt`]: `/Docs/${SMALL} (1).txt`,
  '/J\u030c/alone': '/J\u030c/alone',
};

test.each([2, 4])(
  'placeholders and local files whose keys have become equal are kept under numbered names, from version %s on',
  async (steps) => {
    const directory = oldDirectory(2);
    // Version 4 has a step that left files in place whose new key was taken.
    openDatabase(directory, MIGRATIONS.slice(0, steps)).close();
    const state = openSqliteState({ directory });
    onTestFinished(() => state.close());
    const { placeholders, localFiles } = state.drive('d');
    const found = await placeholders.within(ROOT);
    expect(Object.fromEntries(found.map(({ path: now, id }) => [now, id.slice('held:'.length)]))).toEqual(
      KEPT,
    );
    for (const [now, before] of Object.entries(KEPT)) {
      expect((await placeholders.get(path(now)))?.id).toBe(`held:${before}`);
      expect(await localFiles.read(path(now))).toEqual(Buffer.from(before));
    }
    expect(await placeholders.in(path('/Docs'))).toHaveLength(3);
    expect(await localFiles.in(path(`/${SMALL}`))).toHaveLength(1);
    for (const placeholder of found) await placeholders.forget(placeholder);
    expect(await placeholders.within(ROOT)).toEqual([]);
  },
);
