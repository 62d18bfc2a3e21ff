import { chmod, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import module from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { builtUrl } from '../../support/build.ts';
import { command } from '../../support/command.ts';

/** Whether this Node keeps compiled code: 22.1 and later. */
const keepsCode = 'enableCompileCache' in module;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-code-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Runs a process that keeps compiled code in `cacheDirectory` and loads another module. */
function run(cacheDirectory: string) {
  const script = `
    const { keepCompiledCode } = await import(${JSON.stringify(builtUrl('cli/compile-cache.ts'))});
    keepCompiledCode(${JSON.stringify(cacheDirectory)});
    await import(${JSON.stringify(builtUrl('util/path.ts'))});
    console.log('loaded');`;
  return command(process.execPath, ['--input-type=module', '--eval', script]);
}

async function filesIn(folder: string): Promise<number> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return found.filter((entry) => entry.isFile()).length;
}

test('a process leaves its compiled code in the cache directory where Node can keep it', async () => {
  expect((await run(directory)).output).toContain('loaded');
  expect((await filesIn(join(directory, 'code'))) > 0).toBe(keepsCode);
});

test('compiled code is neither read from nor written to a directory that others may write', async () => {
  await mkdir(join(directory, 'code'));
  await chmod(join(directory, 'code'), 0o777);
  expect((await run(directory)).output).toContain('loaded');
  expect(await filesIn(join(directory, 'code'))).toBe(0);
});

test('a cache directory that cannot be made does not stop a process that would keep its code there', async () => {
  expect(await run('/proc/davgate')).toMatchObject({ code: 0, output: expect.stringContaining('loaded') });
});
