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

describe('a walk through the whole tree', () => {
  test('costs one recursive listing and not one a folder; nothing when it is known', async () => {
    expect((await walked()).sort()).toEqual([...EXPECTED].sort());
    expect(remote.count('list')).toBe(3);
    expect(await walked()).toEqual(EXPECTED);
    expect(remote.count('list')).toBe(3);
  });

  test('begins before all is read', async () => {
    const walk = drive.files.walk(ROOT)[Symbol.asyncIterator]();
    await walk.next();
    expect(remote.count('list')).toBe(1);
    await walk.return?.();
    expect(remote.count('list')).toBe(1);
  });

  test('shows what we do meanwhile, and not what we removed', async () => {
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

  test('goes on folder by folder when the service breaks the recursive listing off', async () => {
    await drive.files.list(at('/Tree'));
    remote.failNext('list', 'reset');
    expect((await walked()).sort()).toEqual([...EXPECTED].sort());
  });

  test('passes over a folder that went away meanwhile', async () => {
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

  test('of a tree too large for one listing goes folder by folder, and finds all', async () => {
    for (const folder of ['a', 'b'])
      for (let index = 0; index < 25_001; index++) remote.putFile(at(`/big/${folder}/${index}`), '');
    let files = 0;
    const before = remote.count('list');
    for await (const { children } of drive.files.walk(at('/big')))
      files += children.filter(({ kind }) => kind === 'file').length;
    expect(files).toBe(50_002);
    // Of /big, of all below it given up half-way, and of each of the two.
    expect(remote.count('list') - before).toBe(4);
  });

  test('fails when the service does', async () => {
    remote.failNext('list', 'offline');
    await expect(walked()).rejects.toMatchObject({ fault: 'offline' });
  });
});

describe('a client that lists folder after folder', () => {
  /** Lists as many folders as make it a walk, whose recursive listing is on its way and held. */
  async function walkBegun(): Promise<Gate> {
    await drive.files.list(at('/Tree'));
    await drive.files.list(at('/Tree/f0'));
    const gate = remote.holdNext('list', 'end');
    await drive.files.list(at('/Tree/f1'));
    await gate.reached;
    return gate;
  }

  test('finds the rest known', async () => {
    await drive.files.list(at('/Tree'));
    for (let index = 0; index < 2; index++) await drive.files.list(at(`/Tree/f${index}`));
    await turn(20);
    // Of /Tree, of each of the two, and of all.
    expect(remote.count('list')).toBe(4);
    const before = remote.questions;
    for (let index = 0; index < 10; index++)
      expect(await drive.names(at(`/Tree/f${index}/deep`))).toEqual(['x']);
    expect(remote.questions).toBe(before);
  });

  test.each([
    ['what is on its way', ['f3', 'f4', 'f5'], ['deep']],
    ['what is in a folder of which nothing is known yet', ['f5/deep'], ['x']],
  ])('waits for %s and does not ask for it too', async (_, folders, names) => {
    const gate = await walkBegun();
    const before = remote.count('list');
    const waiting = Promise.all(folders.map((folder) => drive.names(at(`/Tree/${folder}`))));
    await turn(20);
    gate.release();
    expect(await waiting).toEqual(folders.map(() => names));
    expect(remote.count('list')).toBe(before);
  });

  test('asks by itself when that takes long', async () => {
    const gate = await walkBegun();
    const waiting = drive.names(at('/Tree/f3'));
    await turn(20);
    await drive.clock.advance(1_000);
    expect(await waiting).toEqual(['deep']);
    expect(await drive.names(at('/Tree/f4'))).toEqual(['deep']);
    gate.release();
  });

  test('leaves when its client does', async () => {
    const gate = await walkBegun();
    const client = new AbortController();
    const waiting = drive.files.list(at('/Tree/f3'), client.signal);
    await turn(20);
    client.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    gate.release();
  });

  test('as slowly as a person is taken for a walk at the third', async () => {
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

  test('now and then is not taken for a walk', async () => {
    await drive.files.list(at('/Tree'));
    for (let index = 0; index < 5; index++) {
      await drive.files.list(at(`/Tree/f${index}`));
      await drive.clock.advance(10_000);
    }
    expect(remote.count('list')).toBe(6);
  });
});
