import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { clientFolder } from '../support/client-folder.ts';
import { succeed } from '../support/command.ts';
import { temporaryDirectory } from '../support/program.ts';
import { configureRclone } from '../support/rclone.ts';
import { digestTree, makeRealTree } from '../support/trees.ts';

let local: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  local = await temporaryDirectory();
});
afterAll(() => local.remove());

/** Makes a tree with a file of several blocks and an odd name. */
async function makeSource(name: string): Promise<string> {
  const source = join(local.path, name);
  await makeRealTree(source);
  await writeFile(join(source, 'large'), pseudoRandomBytes(9 * 2 ** 20, 21));
  await writeFile(join(source, 'odd #?%41 ü '), 'odd');
  return source;
}

/** Changes, adds and removes files. */
async function change(source: string): Promise<void> {
  await writeFile(join(source, 'added'), 'added');
  await writeFile(join(source, 'odd #?%41 ü '), 'changed');
  await rm(join(source, 'large'));
}

describe('backup programs', () => {
  test.concurrent('restic through rclone backs up to the drive twice, checks all data, forgets the first backup and restores the second', async () => {
    const folder = await clientFolder('restic');
    const rclone = await configureRclone(folder);
    const config = join(local.path, 'rclone.conf');
    await writeFile(config, await rclone.configuration());
    const environment = {
      HOME: local.path,
      RCLONE_CONFIG: config,
      RESTIC_PASSWORD: 'secret',
      RESTIC_CACHE_DIR: join(local.path, 'restic-cache'),
      RESTIC_REPOSITORY: 'rclone:drive:repository',
    };
    const source = await makeSource('for-restic');
    const restic = (...args: readonly string[]) =>
      succeed('restic', ['--quiet', ...args], { directory: local.path, environment });
    await restic('init');
    await restic('backup', 'for-restic');
    await change(source);
    await restic('backup', 'for-restic');
    await restic('forget', '--keep-last', '1', '--prune');
    await restic('check', '--read-data');
    await restic('restore', 'latest', '--target', join(local.path, 'restored-by-restic'));
    const restored = join(local.path, 'restored-by-restic/for-restic');
    expect(await digestTree(restored)).toEqual(await digestTree(source));
    await rclone.remove();
  });

  test.concurrent('duplicity backs up to the drive, adds an increment, verifies and restores it', async () => {
    const folder = await clientFolder('duplicity');
    const login = `${folder.user}:${encodeURIComponent(folder.password)}@`;
    const target = folder.at('backup').replace('http://', `webdav://${login}`);
    const source = await makeSource('for-duplicity');
    const duplicity = (...args: readonly string[]) =>
      succeed('duplicity', ['--no-encryption', '--no-print-statistics', ...args], {
        environment: { HOME: local.path },
      });
    await duplicity('full', source, target);
    await change(source);
    await duplicity('incremental', source, target);
    const { stdout } = await duplicity('verify', '--compare-data', target, source);
    expect(stdout).toMatch(/, 0 differences found/);
    const restored = join(local.path, 'restored-by-duplicity');
    await duplicity('restore', target, restored);
    expect(await digestTree(restored)).toEqual(await digestTree(source));
  });
});
