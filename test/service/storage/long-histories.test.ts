import { expect, test } from 'vitest';
import { at, openedTree } from './opened-tree.ts';

/** Revisions of a file: more than ten transactions purge. */
const REVISIONS = 1000;

/** Rows that a transaction has room for. */
const ROOM = 90;

type Opened = Awaited<ReturnType<typeof openedTree>>;

/** Adds a content without blocks. Returns its number. */
function addContent({ database }: Opened): number {
  database.exec(`INSERT INTO content (hash, size) VALUES ('hash', 0)`);
  return 1;
}

/** Puts a file as often as `REVISIONS` at each of the paths, moving it from one to the next. Returns the revisions. */
function putHistory(opened: Opened, paths: readonly string[]): number[] {
  const { database, tree, transaction } = opened;
  const content = addContent(opened);
  const numbers: number[] = [];
  let id: string | undefined;
  database.exec('BEGIN');
  for (const path of paths) {
    const before = id && tree.findById(1, id);
    if (before) tree.remove(transaction(0), before, { forever: false, moved: true });
    for (let index = 0; index < REVISIONS; index++) {
      const row = tree.putFile(transaction(0), 1, at(path), { content, clientMs: 0, ...(id && { id }) });
      id = row.id;
      numbers.push(row.seq);
    }
  }
  database.exec('COMMIT');
  return numbers;
}

test.each([
  ['a file', ['/file'], '/file'],
  ['a file that was moved', ['/old', '/new'], '/new'],
  ['a folder with a file', ['/folder/file'], '/folder'],
  ['a folder with a file that was moved', ['/old', '/folder/file'], '/folder'],
])(
  'each step of the removal forever of %s with a long history purges no more revisions than it has room for, and none can be found meanwhile',
  async (_, paths, removed) => {
    const opened = await openedTree();
    const { tree, removals, transaction, count } = opened;
    const numbers = putHistory(opened, paths);
    const id = tree.find(1, at(paths.at(-1) ?? ''))?.id ?? '';
    const row = tree.find(1, at(removed));
    if (!row) throw new Error('the entry is there');
    const expectHidden = () => {
      for (const path of paths) {
        expect(tree.findDeletion(1, at(path))).toBeUndefined();
        expect(tree.revisions(1, at(path), Number.MAX_SAFE_INTEGER, 3 * REVISIONS)).toEqual([]);
      }
      expect(tree.revisions(1, { id }, Number.MAX_SAFE_INTEGER, 3 * REVISIONS)).toEqual([]);
    };
    let before = 0;
    const expectSmallStep = () => {
      expect(count('doomed') - before).toBeLessThanOrEqual(ROOM);
      before = count('doomed');
    };
    tree.remove(transaction(ROOM), row, { forever: true, moved: false });
    expectSmallStep();
    while (!removals.isEmpty) {
      expectHidden();
      removals.step(transaction(ROOM));
      expectSmallStep();
    }
    expectHidden();
    expect(count('doomed')).toBe(numbers.length);
    expect(count('revision')).toBe(0);
  },
);

test('a file that takes the place of one removed forever does not wait for the purge of its long history, and has its own revisions alone', async () => {
  const opened = await openedTree();
  const { tree, removals, transaction, count } = opened;
  putHistory(opened, ['/file']);
  const row = tree.find(1, at('/file'));
  if (!row) throw new Error('the file is there');
  tree.remove(transaction(ROOM), row, { forever: true, moved: false });
  const { seq } = tree.putFile(transaction(ROOM), 1, at('/file'), { content: 1, clientMs: 0 });
  expect(count('doomed')).toBeLessThanOrEqual(ROOM);
  const own = () => tree.revisions(1, at('/file'), Number.MAX_SAFE_INTEGER, 2 * REVISIONS);
  for (; !removals.isEmpty; removals.step(transaction(ROOM)))
    expect(own().map(({ number }) => number)).toEqual([seq]);
  expect(own().map(({ number }) => number)).toEqual([seq]);
  expect([count('doomed'), count('revision')]).toEqual([REVISIONS, 1]);
});

test('a step of the purge removes either many short contents or one with many blocks', async () => {
  const { database, purge, transaction, count } = await openedTree();
  const addBlock = database.prepare('INSERT INTO block (hash, size, inline) VALUES (randomblob(32), 1, 0)');
  const addContent = database.prepare('INSERT INTO content (hash, size) VALUES (hex(randomblob(32)), 0)');
  const addContentBlock = database.prepare('INSERT INTO content_block VALUES (?, ?, ?)');
  const addHolding = database.prepare('INSERT INTO holding (ns, content, revisions) VALUES (1, ?, 1)');
  const addDoomed = database.prepare('INSERT INTO doomed (ns, number, content) VALUES (1, ?, ?)');
  /** Purges contents of so many blocks. Returns how many of them each step removed. */
  const steps = (contents: number, blocks: number): number[] => {
    database.exec('BEGIN');
    for (let index = 0; index < contents; index++) {
      const content = addContent.run().lastInsertRowid;
      for (let block = 0; block < blocks; block++)
        addContentBlock.run(content, block, addBlock.run().lastInsertRowid);
      addHolding.run(content);
      addDoomed.run(index + 1, content);
    }
    database.exec('COMMIT');
    const removed: number[] = [];
    while (!purge.isEmpty) {
      const before = count('content');
      purge.step(transaction(0));
      removed.push(before - count('content'));
    }
    return removed;
  };
  expect(steps(400, 1)).toEqual([200, 200]);
  expect(steps(5, 1000)).toEqual([1, 1, 1, 1, 1]);
  expect(count('block')).toBe(0);
});
