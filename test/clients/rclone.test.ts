import { mkdir, open, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { configureRclone, type Rclone } from '../support/rclone.ts';
import { syncTwice } from '../support/rclone-sync.ts';
import { digestTree } from '../support/trees.ts';

const MIB = 1024 * 1024;

/** Sizes around the service's block, where a boundary is easily got wrong, and one of many blocks. */
const SIZES = [0, 1, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 300 * MIB];

let program: Program;
let rclone: Rclone;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let source: string;

beforeAll(async () => {
  [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  program = await startProgram({ dataDirectory: data.path });
  rclone = await configureRclone(program);
  source = join(local.path, 'source');
  await mkdir(join(source, 'sub folder/deeper'), { recursive: true });
  for (const size of SIZES)
    await writeFile(join(source, `${size} bytes`), pseudoRandomBytes(size, size % 97));
  for (let index = 0; index < 60; index++)
    await writeFile(join(source, 'sub folder/deeper', `#${index} % & ü.txt`), `content of ${index}`);
});
afterAll(async () => {
  await program?.stop();
  await rclone?.remove();
  await Promise.all([data.remove(), local.remove()]);
});

describe('rclone', () => {
  test('copy, then check --download: every byte is the same', async () => {
    await rclone.run('copy', source, 'drive:copied');
    await rclone.run('check', '--download', source, 'drive:copied');
  });

  test('copy back: every byte and every modification time is the same', async () => {
    const back = join(local.path, 'back');
    await rclone.run('copy', 'drive:copied', back);
    expect(await digestTree(back)).toEqual(await digestTree(source));
    const [ours, theirs] = await Promise.all([stat(join(source, '1 bytes')), stat(join(back, '1 bytes'))]);
    expect(Math.floor(theirs.mtimeMs / 1000)).toBe(Math.floor(ours.mtimeMs / 1000));
  });

  test('a second copy sends nothing', async () => {
    const { output } = await rclone.run('copy', source, 'drive:copied', '-v', '--stats-one-line');
    expect(output).not.toMatch(/Copied/);
  });

  test('sync follows changes, renames and deletions', async () => {
    const listed = await syncTwice(rclone, join(local.path, 'changing'));
    expect(listed).toEqual(['changes', 'comes', 'renamed']);
  });

  test('move takes everything along and leaves nothing', async () => {
    const digests = await digestTree(join(source, 'sub folder'));
    await rclone.run('copy', join(source, 'sub folder'), 'drive:to move');
    await rclone.run('move', 'drive:to move', 'drive:moved here');
    await rclone.run('check', '--download', join(source, 'sub folder'), 'drive:moved here');
    await expect(rclone.run('lsf', '-R', 'drive:to move')).rejects.toThrow('directory not found');
    expect(digests.size).toBe(60);
  });

  test('about knows the space', async () => {
    const { stdout } = await rclone.run('about', '--json', 'drive:');
    const { used, free } = JSON.parse(stdout) as { used: number; free: number };
    expect(used).toBeGreaterThan(300 * MIB);
    expect(free).toBeGreaterThan(0);
  });

  test('mount: reads at random offsets give the right bytes', async () => {
    const size = 300 * MIB;
    const content = pseudoRandomBytes(size, size % 97);
    const mount = await rclone.mount();
    const file = await open(join(mount.path, 'copied', `${size} bytes`), 'r');
    try {
      const offsets = new Uint32Array(pseudoRandomBytes(4 * 100, 7).buffer);
      for (const random of offsets) {
        const offset = random % (size - 70_000);
        const { buffer, bytesRead } = await file.read(Buffer.alloc(65_536), 0, 65_536, offset);
        expect(bytesRead).toBe(65_536);
        expect(buffer.equals(content.subarray(offset, offset + 65_536)), `at ${offset}`).toBe(true);
      }
    } finally {
      await file.close();
      await mount.unmount();
    }
  });

  test('purge removes a folder with all in it', async () => {
    await rclone.run('purge', 'drive:moved here');
    const { stdout } = await rclone.run('lsf', 'drive:');
    expect(stdout).not.toContain('moved here');
  });
});
