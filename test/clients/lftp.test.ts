import { mkdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { effort } from '../support/effort.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { temporaryDirectory } from '../support/program.ts';
import { digestTree } from '../support/trees.ts';

// lftp writes with WebDAV's methods, but lists folders by their HTML pages.

const LARGE = pseudoRandomBytes(effort(10) * 2 ** 20 + 1, 13);

let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let folder: ClientFolder;

beforeAll(async () => {
  [local, folder] = await Promise.all([temporaryDirectory(), clientFolder('lftp')]);
  await writeFile(join(local.path, 'large'), LARGE);
});
afterAll(() => local.remove());

/** Runs commands in the local folder and in that of the drive; stops at the first that fails. */
async function lftp(...commands: readonly string[]): Promise<string> {
  const open = `open -u ${folder.user},"${folder.password}" ${folder.url}`;
  const script = ['set cmd:fail-exit yes', 'set net:max-retries 2', open, ...commands].join('; ');
  const { stdout } = await succeed('lftp', ['-c', script], {
    directory: local.path,
    environment: { HOME: local.path },
  });
  return stdout;
}

describe('lftp', () => {
  test(
    'lftp puts a file of several blocks, lists it, and gets it byte for byte, whole and in ranges at the same time',
    shows('lftp', 'list', 'read', 'range', 'write', 'large file'),
    async () => {
      const segments = 'set pget:min-chunk-size 1M';
      const output = await lftp(
        'put large -o large.bin',
        'cls -1',
        'get large.bin -o whole',
        segments,
        'pget -n 3 large.bin -o segments',
      );
      expect(output.split('\n')).toContain('large.bin');
      expect((await folder.read('large.bin'))?.equals(LARGE)).toBe(true);
      for (const name of ['whole', 'segments'])
        expect((await readFile(join(local.path, name))).equals(LARGE), name).toBe(true);
    },
  );

  test('lftp get -c completes a broken download', async () => {
    await writeFile(join(local.path, 'broken'), LARGE.subarray(0, 1_000_000));
    await lftp('put large -o whole.bin', 'get -c whole.bin -o broken');
    expect((await readFile(join(local.path, 'broken'))).equals(LARGE)).toBe(true);
  });

  test('lftp put replaces the content of a file', shows('lftp', 'overwrite'), async () => {
    await writeFile(join(local.path, 'first'), 'a longer first text');
    await writeFile(join(local.path, 'second'), 'second');
    await lftp('put first -o replaced', 'put second -o replaced');
    expect(String(await folder.read('replaced'))).toBe('second');
  });

  test(
    'lftp makes folders, renames and moves a file and a folder, and removes them',
    shows('lftp', 'rename', 'move', 'delete'),
    async () => {
      await writeFile(join(local.path, 'file'), 'content');
      await lftp('mkdir one', 'mkdir one/two', 'put file -o one/file', 'mv one/file one/renamed');
      await lftp('mv one/renamed one/two/moved', 'mv one/two three');
      expect(String(await folder.read('three/moved'))).toBe('content');
      expect(await lftp('find three')).toBe('three/\nthree/moved\n');
      await lftp('rm three/moved', 'rmdir three', 'rm -r one');
      expect(await lftp('cls -1')).not.toMatch(/three|one/);
    },
  );

  test(
    'lftp mirror sends a tree with odd names, gets it back equal with its times, and removes it',
    shows('lftp', 'odd names', 'properties', 'two at once'),
    async () => {
      const source = join(local.path, 'source');
      await mkdir(join(source, 'sub & folder'), { recursive: true });
      const names = [...ODD_NAMES, `#?%41 ü & '`, `sub & folder/it's "here"`];
      const time = new Date('2020-02-02T02:02:02Z');
      for (const name of names) {
        await writeFile(join(source, name), `content of ${name}`);
        await utimes(join(source, name), time, time);
      }
      await lftp('mirror -R --parallel=4 source mirrored', 'mirror --parallel=4 mirrored back');
      expect(await digestTree(join(local.path, 'back'))).toEqual(await digestTree(source));
      for (const name of names)
        expect((await stat(join(local.path, 'back', name))).mtime, name).toEqual(time);
      await lftp('rm -r mirrored');
      expect(await folder.read(`mirrored/${names[0]}`)).toBeUndefined();
    },
  );

  test('lftp fails with the reason for a missing file and for a folder without a parent', async () => {
    await expect(lftp('get missing -o nothing')).rejects.toThrow(/404/);
    await expect(lftp('mkdir missing/below')).rejects.toThrow(/409/);
  });
});
