import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { succeed } from '../support/command.ts';
import { compiles, copyCompiled, INSTALL_OPTIONS, packDavgate } from '../support/packed.ts';
import { temporaryDirectory } from '../support/program.ts';

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

test('a TypeScript program in an empty project installs the packed davgate, compiles against its types and resets its service', async () => {
  const directory = await temporaryDirectory();
  const { tarball, paths } = await packDavgate(directory.path);
  expect(paths.filter((path) => path.startsWith('dist/types/')).length).toBeGreaterThan(0);
  const project = join(directory.path, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }');
  writeFileSync(join(project, 'program.ts'), PROGRAM);
  await succeed('npm', ['install', ...INSTALL_OPTIONS, tarball], { directory: project });
  if (compiles) copyCompiled(project);

  // No `skipLibCheck`: the declarations must be whole by themselves.
  const options = ['--module', 'nodenext', '--target', 'es2023', '--strict', '--exactOptionalPropertyTypes'];
  const typed = ['--types', 'node', '--typeRoots', join(PROJECT_ROOT, 'node_modules/@types')];
  await succeed(join(PROJECT_ROOT, 'node_modules/.bin/tsc'), [...options, ...typed, 'program.ts'], {
    directory: project,
  });
  const { stdout } = await succeed(process.execPath, ['program.js'], { directory: project });
  expect(JSON.parse(stdout)).toEqual({ before: ['a.txt'], after: [], app: true });
  await directory.remove();
});
