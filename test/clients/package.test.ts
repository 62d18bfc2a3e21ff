import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { command, succeed } from '../support/command.ts';
import { compiles, copyCompiled, INSTALL_OPTIONS, isCompiledIn, packDavgate } from '../support/packed.ts';
import { matchOutput, temporaryDirectory } from '../support/program.ts';

const PROGRAM = `import { startService, type EmbeddedService, type FaultSettings } from 'davgate';

const faults: FaultSettings = { 'latency-read-ms': 1 };
const service: EmbeddedService = await startService({ port: 0, memory: true, faults });
// @ts-expect-error: no such fault
const wrong: FaultSettings = { 'latency-reed-ms': 1 };

async function names(): Promise<string[]> {
  const answer = await fetch(service.url + '/2/files/list_folder', {
    method: 'POST',
    headers: { authorization: 'Bearer ' + service.token, 'content-type': 'application/json' },
    body: JSON.stringify({ path: '' }),
  });
  return ((await answer.json()) as { entries: { name: string }[] }).entries.map(({ name }) => name);
}

await fetch(service.contentUrl + '/2/files/upload', {
  method: 'POST',
  headers: {
    authorization: 'Bearer ' + service.token,
    'content-type': 'application/octet-stream',
    'dropbox-api-arg': JSON.stringify({ path: '/a.txt' }),
  },
  body: 'text',
});
const before = await names();
await service.reset();
console.log(JSON.stringify({ before, after: await names(), app: service.appKey !== service.appSecret }));
await service.close();
`;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
/** The folder of the davgate that is installed globally into an empty prefix. */
let installed: string;
let packedPaths: readonly string[];
beforeAll(async () => {
  directory = await temporaryDirectory();
  const { tarball, paths } = await packDavgate(directory.path);
  packedPaths = paths;
  const prefix = join(directory.path, 'prefix');
  await succeed('npm', ['install', '--global', '--prefix', prefix, ...INSTALL_OPTIONS, tarball]);
  installed = join(prefix, 'lib/node_modules/davgate');
});
afterAll(() => directory.remove());

test('the packed davgate, installed globally into an empty prefix, serves a drive', async () => {
  expect(packedPaths.filter((path) => /^(test|dist\/test|cache)\//.test(path))).toEqual([]);
  const prefix = join(directory.path, 'prefix');
  expect(existsSync(join(prefix, 'share/man/man1/davgate.1'))).toBe(true);
  const program = join(prefix, 'bin', 'davgate');
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

test('a TypeScript program in an empty project compiles against the types of the packed davgate, linked there, and resets its service', async () => {
  expect(packedPaths.filter((path) => path.startsWith('dist/types/')).length).toBeGreaterThan(0);
  const project = join(directory.path, 'project');
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  // As `npm link davgate` does: a second installation would take four seconds of processor time.
  symlinkSync(installed, join(project, 'node_modules/davgate'));
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }');
  writeFileSync(join(project, 'program.ts'), PROGRAM);
  if (compiles) copyCompiled(installed);

  // No `skipLibCheck`: the declarations must be whole by themselves.
  const options = ['--module', 'nodenext', '--target', 'es2023', '--strict', '--exactOptionalPropertyTypes'];
  const typed = ['--types', 'node', '--typeRoots', join(PROJECT_ROOT, 'node_modules/@types')];
  await succeed(join(PROJECT_ROOT, 'node_modules/.bin/tsc'), [...options, ...typed, 'program.ts'], {
    directory: project,
  });
  const { stdout } = await succeed(process.execPath, ['program.js'], { directory: project });
  expect(JSON.parse(stdout)).toEqual({ before: ['a.txt'], after: [], app: true });
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
