import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let local: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  program = await startProgram({ dataDirectory: data.path, args: ['--history-folders'] });
  const machine = `machine 127.0.0.1\nlogin ${program.user}\npassword "${program.password}"\n`;
  await writeFile(join(local.path, '.netrc'), machine, { mode: 0o600 });
});
afterAll(async () => {
  await program?.stop();
  await Promise.all([data.remove(), local.remove()]);
});

/** Runs a session at cadaver's prompt; returns all output. cadaver logs in with the `.netrc` of its home. */
async function cadaver(...lines: string[]): Promise<string> {
  const { output } = await succeed('cadaver', [program.url], {
    input: `${lines.join('\n')}\nquit\n`,
    directory: local.path,
    environment: { HOME: local.path },
  });
  return output;
}

test(
  'cadaver puts a file, gets it back byte for byte and lists it with its size',
  shows('cadaver', 'list', 'read', 'write'),
  async () => {
    const content = pseudoRandomBytes(100_000, 3);
    await writeFile(join(local.path, 'up.bin'), content);
    const output = await cadaver('put up.bin "a file.bin"', 'get "a file.bin" down.bin', 'ls');
    expect(output).not.toMatch(/failed|error/i);
    expect((await readFile(join(local.path, 'down.bin'))).equals(content)).toBe(true);
    expect(output).toMatch(/a file\.bin\s+100000/);
  },
);

test(
  'cadaver makes a folder, copies, moves and deletes files, and removes the folder',
  shows('cadaver', 'rename', 'move', 'copy', 'delete'),
  async () => {
    const output = await cadaver(
      'mkcol folder',
      'copy "a file.bin" folder/copy.bin',
      'move folder/copy.bin folder/moved.bin',
      'get folder/moved.bin again.bin',
      'delete "a file.bin"',
      'rmcol folder',
      'ls',
    );
    expect(output).not.toMatch(/failed|error/i);
    expect((await readFile(join(local.path, 'again.bin'))).length).toBe(100_000);
    const [, listed] = output.split('> ls\n');
    expect(listed).toMatch(/Coll: +\.versions/);
    expect(listed).not.toMatch(/folder|a file/);
  },
);

test(
  'cadaver locks a file, finds its lock, puts the file and unlocks it',
  shows('cadaver', 'overwrite', 'lock'),
  async () => {
    await writeFile(join(local.path, 'locked.txt'), 'text');
    const output = await cadaver(
      'put locked.txt',
      'lock locked.txt',
      'showlocks',
      'discover locked.txt',
      'put locked.txt',
      'unlock locked.txt',
      'discover locked.txt',
    );
    expect(output).toMatch(/Locking `locked\.txt': succeeded/);
    expect(output).toMatch(/Discovering locks on `locked\.txt':\nLock token <urn:uuid:[^>]+>/);
    expect(output).toMatch(/Unlocking `locked\.txt': succeeded/);
    expect(output).toMatch(/Discovering locks on `locked\.txt': no locks found/);
    expect(output).not.toMatch(/failed:/);
  },
);

test('cadaver sets a property, and gets its value and its name', shows('cadaver', 'properties'), async () => {
  const output = await cadaver(
    'set namespace urn:example',
    'propset locked.txt colour "rather blue"',
    'propget locked.txt colour',
    'propnames locked.txt',
  );
  expect(output).toMatch(/rather blue/);
  expect(output).toMatch(/colour/);
  expect(output).not.toMatch(/failed/);
});

test('cadaver shows the versions of a file', async () => {
  await writeFile(join(local.path, 'old'), 'one');
  await writeFile(join(local.path, 'new'), 'three');
  const output = await cadaver('put old history.txt', 'put new history.txt', 'history history.txt');
  expect(output).toMatch(/`\/history\.txt': 2 versions in history:\n/);
  expect(output).toMatch(/\n\/\.versions\/history\.txt\/\S+Z-([0-9a-f]+)\.txt +3 .* <\1>\n/);
  expect(output).toMatch(/\n\/history\.txt +5 .* <[0-9a-f]+>\n/);
});
