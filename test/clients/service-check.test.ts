import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { runProgram, temporaryDirectory } from '../support/program.ts';
import { startTestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';

let directory: { path: string; remove(): Promise<void> };
const check = () => runProgram(['service', 'check', '--data', directory.path]);

beforeAll(async () => {
  directory = await temporaryDirectory();
  const service = await startTestService({ dataDirectory: directory.path });
  await put(service, '/folder/photo.jpg', pseudoRandomBytes(100_000, 1));
  const whileOpen = await check();
  expect([whileOpen.code, whileOpen.output]).toEqual([2, expect.stringContaining('in use')]);
  await service.close();
});
afterAll(() => directory.remove());

test('davgate service check ends with 0 for a sound directory, 1 and the path for a damaged one, and 2 for a missing one', async () => {
  const sound = await check();
  expect([sound.code, sound.output]).toEqual([
    0,
    expect.stringMatching(/^No damage in .* \(blocks: 1, 0\.1 MB\)\.$/m),
  ]);
  const [block = ''] = await readdir(join(directory.path, 'blocks'));
  const file = join(directory.path, 'blocks', block);
  const bytes = await readFile(file);
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  await writeFile(file, bytes);
  const damaged = await check();
  expect([damaged.code, damaged.output]).toEqual([
    1,
    expect.stringContaining('/folder/photo.jpg (current, rev '),
  ]);
  expect((await runProgram(['service', 'check', '--data', join(directory.path, 'none')])).code).toBe(2);
  expect((await runProgram(['service', 'check', '--date', directory.path])).code).toBe(2);
  expect((await runProgram(['service', 'check', '--help'])).code).toBe(0);
});
