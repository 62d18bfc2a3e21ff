import { afterEach, beforeEach, expect, test } from 'vitest';
import { ROOT } from '../../../src/util/path.ts';
import { MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  remote.putFile(at('/From/new'), 'new');
  remote.putFile(at('/To/old'), 'old');
  drive = await MemoryDrive.open(remote);
  await drive.files.stat(at('/From'));
  await drive.files.stat(at('/To'));
});

afterEach(() => drive.close());

const moves = {
  copy: () => drive.files.copy(at('/From'), at('/To'), { overwrite: true, shallow: false }),
  move: () => drive.files.move(at('/From'), at('/To'), { overwrite: true }),
  rename: () => drive.files.move(at('/To'), at('/TO'), { overwrite: true }),
};

/** Runs `meanwhile` after the old target `/To` has been moved aside and before the operation continues. */
async function during<T>(kind: keyof typeof moves, meanwhile: () => T): Promise<Awaited<T>> {
  const aside = remote.holdNext('move', 'end');
  const done = moves[kind]();
  await aside.reached;
  const other = Promise.resolve(meanwhile());
  await turn(10);
  aside.release();
  const [outcome] = await Promise.all([other, done]);
  while ((await drive.state.replacements.all()).length > 0) await turn();
  return outcome;
}

/** Runs `ask`, whose listing the service begins while the target `/To` is aside, although it was sent before. */
async function overtaken<T>(kind: keyof typeof moves, ask: () => Promise<T>): Promise<T> {
  const sent = remote.holdNext('list', 'begin');
  const answer = ask();
  await sent.reached;
  await during(kind, () => sent.release());
  return answer;
}

test.each([
  ['copy', ['/From', '/From/new', '/To', '/To/late', '/To/new']],
  ['move', ['/To', '/To/late', '/To/new']],
  ['rename', ['/From', '/From/new', '/TO', '/TO/late', '/TO/old']],
] as const)(
  'a file put into the target folder during its %s is kept next to the expected entries',
  async (kind, left) => {
    await during(kind, () => drive.write(at('/To/late'), 'late'));
    expect(remote.paths).toEqual(left);
    expect(await drive.text(at('/To/late'))).toBe('late');
  },
);

test('a folder created in a folder whose letter case is being changed is kept', async () => {
  await during('rename', () => drive.files.createFolder(at('/To/Late')));
  expect(remote.paths).toEqual(['/From', '/From/new', '/TO', '/TO/Late', '/TO/old']);
});

test('STAT finds a file below a folder whose letter case is being changed', async () => {
  expect(await during('rename', () => drive.files.stat(at('/to/old')))).toMatchObject({ sizeBytes: 3 });
});

test('a folder whose letter case is being changed lists its children', async () => {
  const listing = await during('rename', () => drive.files.list(at('/To')));
  expect(listing.children.map(({ name }) => name)).toEqual(['old']);
});

test('a folder that is being replaced by a MOVE can be moved on meanwhile', async () => {
  await during('move', () => drive.files.move(at('/To'), at('/On'), { overwrite: true }));
  expect(remote.paths).toEqual(['/On', '/On/new']);
});

test('a write in progress is committed before a change of letter case moves its folder aside', async () => {
  const commit = remote.holdNext('write', 'begin');
  const written = drive.write(at('/To/late'), 'late');
  await commit.reached;
  const renamed = moves.rename();
  await turn(10);
  commit.release();
  await Promise.all([written, renamed]);
  expect(remote.paths).toEqual(['/From', '/From/new', '/TO', '/TO/late', '/TO/old']);
});

test('a folder made elsewhere at the target during a COPY does not stand for the copy', async () => {
  await during('copy', () => remote.putFile(at('/To/theirs'), 'theirs'));
  expect(remote.paths).toEqual(['/From', '/From/new', '/To', '/To/new']);
});

test.each([
  ['copy', ['new']],
  ['move', ['new']],
  ['rename', ['old']],
] as const)(
  'a listing of a folder that was sent just before a %s moved the folder aside shows what is there afterwards',
  async (kind, names) => {
    expect(await overtaken(kind, () => drive.names(at('/To')))).toEqual(names);
    expect(await drive.names(at('/To'))).toEqual(names);
  },
);

test.each([
  ['copy', ['From', 'To']],
  ['move', ['To']],
  ['rename', ['From', 'TO']],
] as const)(
  'a listing that was sent just before a %s moved a folder in it aside shows that folder',
  async (kind, names) => {
    expect(await overtaken(kind, () => drive.names(ROOT))).toEqual(expect.arrayContaining([...names]));
    expect(await drive.names(ROOT)).toEqual(names);
  },
);

test('a walk whose listing of a folder was sent just before a change of letter case above it shows what is in the folder', async () => {
  remote.putFile(at('/To/sub/deep'), 'deep');
  await drive.files.list(at('/To'));
  const walked = await overtaken('rename', async () => {
    const found: string[] = [];
    for await (const { children } of drive.files.walk(at('/To')))
      found.push(...children.map(({ name }) => name));
    return found;
  });
  expect(walked.sort()).toEqual(['deep', 'old', 'sub']);
});

test('a listing ends with few lookups while files in its folder are replaced again and again', async () => {
  const pairs = [0, 1, 2, 3].map((number) => [at(`/To/new${number}`), at(`/To/old${number}`)] as const);
  for (const [, old] of pairs) remote.putFile(old, 'old');
  let isOver = false;
  const replaceAgainAndAgain = async ([fresh, old]: (typeof pairs)[number]) => {
    for (; !isOver; await turn()) {
      await drive.write(fresh, 'new');
      await drive.files.move(fresh, old, { overwrite: true });
    }
  };
  const sent = remote.holdNext('list', 'begin');
  const listed = drive.names(at('/To'));
  await sent.reached;
  const replaced = Promise.all(pairs.map(replaceAgainAndAgain));
  await turn(100);
  const before = remote.count('stat');
  sent.release();
  const names = await listed.finally(() => {
    isOver = true;
  });
  const lookups = remote.count('stat') - before;
  await replaced;
  expect(names).toEqual(expect.arrayContaining(['old', 'old0', 'old1', 'old2', 'old3']));
  expect(lookups).toBeLessThan(20);
});

test('a listing of a folder that was removed elsewhere a moment ago fails with not-found', async () => {
  remote.holdFeed();
  remote.delete(at('/To'));
  await expect(drive.files.list(at('/To'))).rejects.toMatchObject({ fault: 'not-found' });
});

test('a listing of a folder that was replaced by a file elsewhere a moment ago fails with not-a-folder', async () => {
  remote.holdFeed();
  remote.delete(at('/To'));
  remote.putFile(at('/To'), 'a file');
  await expect(drive.files.list(at('/To'))).rejects.toMatchObject({ fault: 'not-a-folder' });
});
