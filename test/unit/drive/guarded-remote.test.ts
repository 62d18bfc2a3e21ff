import { afterEach, beforeEach, expect, test } from 'vitest';
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

/** Does `meanwhile` while what was at `/To` has stepped aside. */
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

test.each([
  ['copy', ['/From', '/From/new', '/To', '/To/late', '/To/new']],
  ['move', ['/To', '/To/late', '/To/new']],
  ['rename', ['/From', '/From/new', '/TO', '/TO/late', '/TO/old']],
] as const)(
  'a file put into a folder during its %s is there, with all that should be',
  async (kind, left) => {
    await during(kind, () => drive.write(at('/To/late'), 'late'));
    expect(remote.paths).toEqual(left);
    expect(await drive.text(at('/To/late'))).toBe('late');
  },
);

test('a folder made in a folder during a change of letter case is there, with all that should be', async () => {
  await during('rename', () => drive.files.createFolder(at('/To/Late')));
  expect(remote.paths).toEqual(['/From', '/From/new', '/TO', '/TO/Late', '/TO/old']);
});

test('during a change of letter case all below can be seen', async () => {
  expect(await during('rename', () => drive.files.stat(at('/to/old')))).toMatchObject({ sizeBytes: 3 });
});

test('during a change of letter case all below is listed', async () => {
  const listing = await during('rename', () => drive.files.list(at('/To')));
  expect(listing.children.map(({ name }) => name)).toEqual(['old']);
});

test('what is being replaced can be moved on meanwhile', async () => {
  await during('move', () => drive.files.move(at('/To'), at('/On'), { overwrite: true }));
  expect(remote.paths).toEqual(['/On', '/On/new']);
});

test('a write that is being committed is done before its folder steps aside', async () => {
  const commit = remote.holdNext('write', 'begin');
  const written = drive.write(at('/To/late'), 'late');
  await commit.reached;
  const renamed = moves.rename();
  await turn(10);
  commit.release();
  await Promise.all([written, renamed]);
  expect(remote.paths).toEqual(['/From', '/From/new', '/TO', '/TO/late', '/TO/old']);
});

test('a copy is not said to be done because somebody else has made a folder there meanwhile', async () => {
  await during('copy', () => remote.putFile(at('/To/theirs'), 'theirs'));
  expect(remote.paths).toEqual(['/From', '/From/new', '/To', '/To/new']);
});
