import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { type ClientFolder, clientFolder } from '../support/client-folder.ts';
import { command, succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { effort } from '../support/effort.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { temporaryDirectory } from '../support/program.ts';

// davix is the client of the grid storages of physics.

const LARGE = pseudoRandomBytes(effort(10) * 2 ** 20 + 1, 12);
const NAMES = [...ODD_NAMES, `#?%41 ü & '`];

let local: Awaited<ReturnType<typeof temporaryDirectory>>;
let folder: ClientFolder;

beforeAll(async () => {
  [local, folder] = await Promise.all([temporaryDirectory(), clientFolder('davix')]);
});
afterAll(() => local.remove());

/**
 * Runs a davix program with the login in a header: with `--userlogin`, davix 0.8.4 of Debian repeats no request after a 401, nor
 * does it with `rclone serve webdav`.
 */
async function davix(program: string, ...args: readonly string[]): Promise<string> {
  const login = ['--header', `Authorization: ${folder.authorization}`];
  const { stdout } = await succeed(`davix-${program}`, [...login, ...args], { directory: local.path });
  return stdout;
}

/** Moves a file. `davix-mv` of Debian ends with 255 after a success too, but then it prints nothing. */
async function move(from: string, to: string): Promise<void> {
  const login = ['--header', `Authorization: ${folder.authorization}`];
  const { output } = await command('davix-mv', [...login, folder.at(from), folder.at(to)]);
  expect(output).toBe('');
}

/** Returns the names that `davix-ls` shows, which prints them as they are in URLs. */
async function listed(path: string): Promise<string[]> {
  return (await davix('ls', folder.at(path))).split('\n').filter(Boolean).map(decodeURIComponent).sort();
}

describe('davix', () => {
  test(
    'davix-put sends a file of several blocks, davix-ls -l shows its size, and davix-get gets it byte for byte',
    shows('davix', 'list', 'read', 'write', 'large file'),
    async () => {
      await writeFile(join(local.path, 'large'), LARGE);
      await davix('put', 'large', folder.at('large.bin'));
      expect((await folder.read('large.bin'))?.equals(LARGE)).toBe(true);
      expect(await davix('ls', '-l', folder.url)).toMatch(new RegExp(` ${LARGE.length} .* large\\.bin\n`));
      await davix('get', folder.at('large.bin'), 'back');
      expect((await readFile(join(local.path, 'back'))).equals(LARGE)).toBe(true);
    },
  );

  test('davix-http gets a range of a file', shows('davix', 'range'), async () => {
    await writeFile(join(local.path, 'digits'), '0123456789');
    await davix('put', 'digits', folder.at('digits'));
    expect(await davix('http', '-H', 'Range: bytes=3-6', folder.at('digits'))).toBe('3456');
  });

  test('davix-put replaces the content of a file', shows('davix', 'overwrite'), async () => {
    for (const text of ['a longer first text', 'second']) {
      await writeFile(join(local.path, 'text'), text);
      await davix('put', 'text', folder.at('replaced'));
    }
    expect(String(await folder.read('replaced'))).toBe('second');
  });

  test(
    'davix-mkdir, davix-mv and davix-rm make a folder, rename and move a file, and remove both',
    shows('davix', 'rename', 'move', 'delete'),
    async () => {
      await davix('mkdir', folder.at('sub'));
      await writeFile(join(local.path, 'file'), 'content');
      await davix('put', 'file', folder.at('file'));
      await move('file', 'renamed');
      await move('renamed', 'sub/moved');
      expect(String(await folder.read('sub/moved'))).toBe('content');
      expect(await listed('sub')).toEqual(['moved']);
      await davix('rm', folder.at('sub/moved'));
      await davix('rm', folder.at('sub/'));
      expect(await listed('')).not.toContain('sub');
    },
  );

  test(
    'files with odd names are put, listed, read, moved and removed by davix',
    shows('davix', 'odd names'),
    async () => {
      await davix('mkdir', folder.at('odd'));
      for (const name of NAMES) {
        await writeFile(join(local.path, 'content'), name);
        await davix('put', 'content', folder.at(`odd/${name}`));
      }
      expect(await listed('odd')).toEqual([...NAMES].sort());
      for (const name of NAMES) {
        expect(await davix('get', folder.at(`odd/${name}`))).toBe(name);
        await move(`odd/${name}`, `odd/new ${name}`);
      }
      expect(await listed('odd')).toEqual(NAMES.map((name) => `new ${name}`).sort());
      for (const name of NAMES) await davix('rm', folder.at(`odd/new ${name}`));
      expect(await listed('odd')).toEqual([]);
    },
  );

  test(
    'eight davix-put at the same time leave eight whole files',
    shows('davix', 'two at once'),
    async () => {
      const contents = Array.from({ length: 8 }, (_, index) => pseudoRandomBytes(300_000, index));
      await Promise.all(
        contents.map(async (content, index) => {
          await writeFile(join(local.path, `at once ${index}`), content);
          await davix('put', `at once ${index}`, folder.at(`at once ${index}`));
        }),
      );
      for (const [index, content] of contents.entries())
        expect((await folder.read(`at once ${index}`))?.equals(content)).toBe(true);
    },
  );

  test('davix fails with the reason for a missing file and for a folder whose name is taken', async () => {
    await expect(davix('get', folder.at('missing'))).rejects.toThrow(/404/);
    await expect(davix('mkdir', folder.at('digits'))).rejects.toThrow(/405|exist/i);
  });
});
