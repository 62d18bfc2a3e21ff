import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import type { Gate } from '../../../support/call-script.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  for (let index = 0; index < 10; index++) remote.putFile(at(`/Tree/f${index}/deep/x`), `${index}`);
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

/** Walks the whole tree and returns the paths of its folders and files. */
async function walked(): Promise<string[]> {
  const seen: string[] = [];
  for await (const { folder, children } of drive.files.walk(ROOT))
    seen.push(folder.path, ...children.filter(({ kind }) => kind === 'file').map(({ path }) => path));
  return seen;
}

const EXPECTED = [
  '/',
  '/Tree',
  ...Array.from({ length: 10 }, (_, index) => [
    `/Tree/f${index}`,
    `/Tree/f${index}/deep`,
    `/Tree/f${index}/deep/x`,
  ]).flat(),
];

describe('a walk of the whole tree', () => {
  test('a first walk costs one recursive listing, and a second walk makes no call', async () => {
    expect((await walked()).sort()).toEqual([...EXPECTED].sort());
    expect(remote.count('list')).toBe(3);
    expect(await walked()).toEqual(EXPECTED);
    expect(remote.count('list')).toBe(3);
  });

  test('a walk yields its first folder after one listing', async () => {
    const walk = drive.files.walk(ROOT)[Symbol.asyncIterator]();
    await walk.next();
    expect(remote.count('list')).toBe(1);
    await walk.return?.();
    expect(remote.count('list')).toBe(1);
  });

  test('a walk shows a file written meanwhile and nothing removed meanwhile', async () => {
    await drive.files.list(at('/Tree'));
    const gate = remote.holdNext('list', 'end');
    const walking = walked();
    await gate.reached;
    await drive.write(at('/Tree/f1/new'), 'new');
    await drive.files.remove(at('/Tree/f2'), { recoverable: true });
    await drive.files.createFolder(at('/Tree/f2'));
    await drive.files.remove(at('/Tree/f3/deep/x'), { recoverable: true });
    gate.release();
    const seen = await walking;
    expect(seen).toContain('/Tree/f1/new');
    expect(seen).not.toContain('/Tree/f2/deep');
    expect(seen).not.toContain('/Tree/f3/deep/x');
    expect((await walked()).sort()).toEqual(remote.paths.concat('/').sort());
  });

  test('a walk continues folder by folder when the service aborts the recursive listing', async () => {
    await drive.files.list(at('/Tree'));
    remote.failNext('list', 'reset');
    expect((await walked()).sort()).toEqual([...EXPECTED].sort());
  });

  test('a walk skips a folder removed meanwhile, and a walk of a removed folder fails with not-found', async () => {
    await walked();
    const walk = drive.files.walk(at('/Tree'))[Symbol.asyncIterator]();
    await walk.next();
    await drive.files.remove(at('/Tree/f4'), { recoverable: true });
    const rest: string[] = [];
    for (let step = await walk.next(); !step.done; step = await walk.next())
      rest.push(step.value.folder.path);
    expect(rest).toHaveLength(18);
    await drive.files.remove(at('/Tree'), { recoverable: true });
    await expect(drive.files.walk(at('/Tree'))[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      fault: 'not-found',
    });
  });

  test('a walk of a tree too large for one listing goes folder by folder and finds all files', async () => {
    for (const folder of ['a', 'b'])
      for (let index = 0; index < 25_001; index++) remote.putFile(at(`/big/${folder}/${index}`), '');
    let files = 0;
    const before = remote.count('list');
    for await (const { children } of drive.files.walk(at('/big')))
      files += children.filter(({ kind }) => kind === 'file').length;
    expect(files).toBe(50_002);
    // One listing of /big, one recursive listing that is given up, and one for each of the two folders.
    expect(remote.count('list') - before).toBe(4);
  });

  test('a walk fails with offline when the service cannot be reached', async () => {
    remote.failNext('list', 'offline');
    await expect(walked()).rejects.toMatchObject({ fault: 'offline' });
  });
});

describe('prefetch for a client that lists folder after folder', () => {
  /** Lists enough folders to start a prefetch, and holds its recursive listing. */
  async function startPrefetch(): Promise<Gate> {
    await drive.files.list(at('/Tree'));
    await drive.files.list(at('/Tree/f0'));
    const gate = remote.holdNext('list', 'end');
    await drive.files.list(at('/Tree/f1'));
    await gate.reached;
    return gate;
  }

  test('after two folder listings the rest of the tree is prefetched, and later listings make no call', async () => {
    await drive.files.list(at('/Tree'));
    for (let index = 0; index < 2; index++) await drive.files.list(at(`/Tree/f${index}`));
    await turn(20);
    // One listing of /Tree, one for each of the two folders, and the recursive one.
    expect(remote.count('list')).toBe(4);
    const before = remote.questions;
    for (let index = 0; index < 10; index++)
      expect(await drive.names(at(`/Tree/f${index}/deep`))).toEqual(['x']);
    expect(remote.questions).toBe(before);
  });

  test.each([
    ['a folder', ['f3', 'f4', 'f5'], ['deep']],
    ['an uncached subfolder', ['f5/deep'], ['x']],
  ])(
    'a listing of %s that a prefetch covers waits for the prefetch and makes no call',
    async (_, folders, names) => {
      const gate = await startPrefetch();
      const before = remote.count('list');
      const waiting = Promise.all(folders.map((folder) => drive.names(at(`/Tree/${folder}`))));
      await turn(20);
      gate.release();
      expect(await waiting).toEqual(folders.map(() => names));
      expect(remote.count('list')).toBe(before);
    },
  );

  test('a listing that has waited one second for a slow prefetch makes its own call', async () => {
    const gate = await startPrefetch();
    const waiting = drive.names(at('/Tree/f3'));
    await turn(20);
    await drive.clock.advance(1_000);
    expect(await waiting).toEqual(['deep']);
    expect(await drive.names(at('/Tree/f4'))).toEqual(['deep']);
    gate.release();
  });

  test('a listing that waits for a prefetch ends when its client leaves', async () => {
    const gate = await startPrefetch();
    const client = new AbortController();
    const waiting = drive.files.list(at('/Tree/f3'), client.signal);
    await turn(20);
    client.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    gate.release();
  });

  test('a client that lists a folder every two seconds triggers a prefetch at the third', async () => {
    await drive.files.list(at('/Tree'));
    const counts: number[] = [];
    for (let index = 0; index < 4; index++) {
      await drive.files.list(at(`/Tree/f${index}`));
      await turn(20);
      counts.push(remote.count('list'));
      await drive.clock.advance(2_000);
    }
    expect(counts).toEqual([2, 3, 5, 5]);
  });

  test('a client that lists a folder every ten seconds triggers no prefetch', async () => {
    await drive.files.list(at('/Tree'));
    for (let index = 0; index < 5; index++) {
      await drive.files.list(at(`/Tree/f${index}`));
      await drive.clock.advance(10_000);
    }
    expect(remote.count('list')).toBe(6);
  });
});
