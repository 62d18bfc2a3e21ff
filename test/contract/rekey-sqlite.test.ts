import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MIGRATIONS } from '../../src/state/sqlite/migrations.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import { openDatabase } from '../../src/state/sqlite/state-database.ts';
import { ROOT } from '../../src/util/path.ts';
import { path } from '../support/paths.ts';

/** `J̌` in the key that it had once, with the mark apart. Its small letter has always had one of its own. */
const OUTDATED = 'j\u030c';
const SMALL = '\u01f0';

/** Held and local files as the first version kept them: their paths, and keys that are outdated by now. */
const FILES = [
  { path: `/Docs/${SMALL}.txt`, key: `/docs/${SMALL}.txt`, parentKey: '/docs' },
  { path: '/Docs/J\u030c.txt', key: `/docs/${OUTDATED}.txt`, parentKey: '/docs' },
  { path: `/Docs/${SMALL} (1).txt`, key: `/docs/${SMALL} (1).txt`, parentKey: '/docs' },
  { path: '/J\u030c/alone', key: `/${OUTDATED}/alone`, parentKey: `/${OUTDATED}` },
];

/** A state directory that `steps` steps of the schema have made, with one drive. */
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

/** By what became the path of each file, the path that it had. */
const KEPT = {
  [`/Docs/${SMALL}.txt`]: `/Docs/${SMALL}.txt`,
  '/Docs/J\u030c (2).txt': '/Docs/J\u030c.txt',
  [`/Docs/${SMALL} (1).txt`]: `/Docs/${SMALL} (1).txt`,
  '/J\u030c/alone': '/J\u030c/alone',
};

test.each([2, 4])(
  'held and local files whose names have become one are kept side by side and found, from version %s on',
  async (steps) => {
    const directory = oldDirectory(2);
    // A database that has taken the step which left those in whose way something was.
    openDatabase(directory, MIGRATIONS.slice(0, steps)).close();
    const state = openSqliteState({ directory });
    onTestFinished(() => state.close());
    const { placeholders, localFiles } = state.drive('d');
    const held = await placeholders.within(ROOT);
    expect(Object.fromEntries(held.map(({ path: now, id }) => [now, id.slice('held:'.length)]))).toEqual(
      KEPT,
    );
    for (const [now, before] of Object.entries(KEPT)) {
      expect((await placeholders.get(path(now)))?.id).toBe(`held:${before}`);
      expect(await localFiles.read(path(now))).toEqual(Buffer.from(before));
    }
    expect(await placeholders.in(path('/Docs'))).toHaveLength(3);
    expect(await localFiles.in(path(`/${SMALL}`))).toHaveLength(1);
    for (const { path: now } of held) await placeholders.forget(now);
    expect(await placeholders.within(ROOT)).toEqual([]);
  },
);
