import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { command, succeed } from '../support/command.ts';
import { compiles, copyCompiled, INSTALL_OPTIONS, isCompiledIn, packDavgate } from '../support/packed.ts';
import { matchOutput, temporaryDirectory } from '../support/program.ts';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(() => directory.remove());

test('the packed davgate, installed globally into an empty prefix, serves a drive', async () => {
  const { tarball, paths } = await packDavgate(directory.path);
  expect(paths.filter((path) => /^(test|dist\/test|cache)\//.test(path))).toEqual([]);

  const prefix = join(directory.path, 'prefix');
  await succeed('npm', ['install', '--global', '--prefix', prefix, ...INSTALL_OPTIONS, tarball]);

  expect(existsSync(join(prefix, 'share/man/man1/davgate.1'))).toBe(true);
  const program = join(prefix, 'bin', 'davgate');
  const installed = join(prefix, 'lib/node_modules/davgate');
  const args = ['--listen', '127.0.0.1:0', '--no-auth', '--data-dir', join(directory.path, 'data')];
  if (compiles) {
    const { code, output } = await command(program, args);
    expect([code, output]).toEqual([1, expect.stringContaining(`npm --prefix ${installed} run postinstall`)]);
    copyCompiled(installed);
  } else expect(isCompiledIn(installed)).toBe(false);

  await whileServing(program, args, async (url) => {
    expect((await fetch(`${url}file.txt`, { method: 'PUT', body: 'packed' })).status).toBe(201);
    expect(await (await fetch(`${url}file.txt`)).text()).toBe('packed');
  });
});

test('package-lock.json has "gypfile": false for better-sqlite3, so that npm ci does not compile it', () => {
  // Without this field `npm ci` runs `node-gyp rebuild`, which needs Python, whatever the package's own `gypfile` says.
  // `npm install` removes it when it rewrites the file: add it again.
  const lock = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8'));
  expect(lock.packages['node_modules/better-sqlite3'].gypfile).toBe(false);
});

/** Runs `program` while `use` works with the drive that it serves. */
async function whileServing(
  program: string,
  args: string[],
  use: (url: string) => Promise<void>,
): Promise<void> {
  const child: ChildProcess = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  try {
    await use(await matchOutput(child, () => text, /http:\/\/127\.0\.0\.1:\d+\//));
  } finally {
    child.kill();
    await once(child, 'close');
  }
  expect(child.exitCode).toBe(0);
}
