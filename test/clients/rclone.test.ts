import { mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { shows } from '../support/compatibility.ts';
import { effort } from '../support/effort.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { configureRclone, type Rclone } from '../support/rclone.ts';
import { syncTwice } from '../support/rclone-sync.ts';
import { digestTree } from '../support/trees.ts';

const MIB = 1024 * 1024;

/** Size of a file of many blocks, larger than any buffer on its way: 120 MiB in a long run. */
const LARGE_BYTES = effort(24) * MIB;
/** Sizes around the service's block, and the large one. */
const SIZES = [0, 1, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, LARGE_BYTES];

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

test(
  'rclone check --download finds no difference after a copy to the drive',
  shows('rclone', 'list', 'write'),
  async () => {
    await rclone.run('copy', source, 'drive:copied');
    // The large file is compared below, when it is copied back.
    await rclone.run('check', '--download', '--max-size', '8M', source, 'drive:copied');
  },
);

test(
  'rclone copy from the drive gives the same bytes and modification times',
  shows('rclone', 'read', 'large file', 'properties'),
  async () => {
    const back = join(local.path, 'back');
    await rclone.run('copy', 'drive:copied', back);
    expect(await digestTree(back)).toEqual(await digestTree(source));
    const [ours, theirs] = await Promise.all([stat(join(source, '1 bytes')), stat(join(back, '1 bytes'))]);
    expect(Math.floor(theirs.mtimeMs / 1000)).toBe(Math.floor(ours.mtimeMs / 1000));
  },
);

test('a second rclone copy of an unchanged tree to the drive uploads nothing', async () => {
  const { output } = await rclone.run('copy', source, 'drive:copied', '-v', '--stats-one-line');
  expect(output).not.toMatch(/Copied/);
});

test(
  'rclone sync repeats changes, renames and deletions on the drive',
  shows('rclone', 'overwrite', 'rename'),
  async () => {
    const listed = await syncTwice(rclone, join(local.path, 'changing'));
    expect(listed).toEqual(['changes', 'comes', 'renamed']);
  },
);

test(
  'rclone move of a remote folder takes all its files along and leaves no source folder',
  shows('rclone', 'move'),
  async () => {
    const digests = await digestTree(join(source, 'sub folder'));
    await rclone.run('copy', join(source, 'sub folder'), 'drive:to move');
    await rclone.run('move', 'drive:to move', 'drive:moved here');
    await rclone.run('check', '--download', join(source, 'sub folder'), 'drive:moved here');
    await expect(rclone.run('lsf', '-R', 'drive:to move')).rejects.toThrow('directory not found');
    expect(digests.size).toBe(60);
  },
);

test(
  'rclone copies files with names that the service does not take to the drive, and back as they were',
  shows('rclone', 'odd names'),
  async () => {
    const [odd, back] = [join(local.path, 'odd'), join(local.path, 'odd back')];
    await mkdir(odd);
    for (const name of ODD_NAMES) await writeFile(join(odd, name), name);
    await rclone.run('copy', odd, 'drive:odd');
    await rclone.run('check', '--download', odd, 'drive:odd');
    await rclone.run('copy', 'drive:odd', back);
    expect(await digestTree(back)).toEqual(await digestTree(odd));
  },
);

test('rclone copies a file whose name is 250 bytes that are not UTF-8, longer than the service takes, and back as it was', async () => {
  const [long, back] = [join(local.path, 'long'), join(local.path, 'long back')];
  const name = Buffer.alloc(250, 0xe9);
  await mkdir(long);
  await writeFile(Buffer.concat([Buffer.from(`${long}/`), name]), 'text');
  await rclone.run('copy', long, 'drive:long');
  await rclone.run('check', '--download', long, 'drive:long');
  await rclone.run('moveto', 'drive:long', 'drive:long too');
  await rclone.run('copy', 'drive:long too', back);
  expect(await readdir(back, { encoding: 'buffer' })).toEqual([name]);
});

test('rclone copyto within the drive copies a file without a download', shows('rclone', 'copy'), async () => {
  const { output } = await rclone.run('copyto', '-v', `drive:copied/${4 * MIB} bytes`, 'drive:twin');
  expect(output).toContain('server-side copy');
  await rclone.run('copyto', 'drive:twin', join(local.path, 'twin'));
  const twins = [join(local.path, 'twin'), join(source, `${4 * MIB} bytes`)];
  const [one, other] = await Promise.all(twins.map((path) => readFile(path)));
  expect(other && one?.equals(other)).toBe(true);
});

test('rclone about shows the used and free space of the drive', async () => {
  const { stdout } = await rclone.run('about', '--json', 'drive:');
  const { used, free } = JSON.parse(stdout) as { used: number; free: number };
  expect(used).toBeGreaterThan(LARGE_BYTES);
  expect(free).toBeGreaterThan(0);
});

test(
  'reads at random offsets of a file in an rclone mount of the drive give the right bytes',
  shows('rclone', 'range'),
  async () => {
    const name = `${LARGE_BYTES} bytes`;
    const mount = await rclone.mount();
    const [file, original] = await Promise.all([
      open(join(mount.path, 'copied', name), 'r'),
      open(join(source, name), 'r'),
    ]);
    try {
      const offsets = new Uint32Array(pseudoRandomBytes(4 * 100, 7).buffer);
      for (const random of offsets) {
        const offset = random % (LARGE_BYTES - 70_000);
        const { buffer, bytesRead } = await file.read(Buffer.alloc(65_536), 0, 65_536, offset);
        expect(bytesRead).toBe(65_536);
        const expected = await original.read(Buffer.alloc(65_536), 0, 65_536, offset);
        expect(buffer.equals(expected.buffer), `at ${offset}`).toBe(true);
      }
    } finally {
      await Promise.all([file.close(), original.close()]);
      await mount.unmount();
    }
  },
);

test('rclone purge removes a folder of the drive', shows('rclone', 'delete'), async () => {
  await rclone.pipe('x', 'rcat', 'drive:to purge/folder/file');
  await rclone.run('purge', 'drive:to purge');
  const { stdout } = await rclone.run('lsf', 'drive:');
  expect(stdout).not.toContain('to purge');
});
