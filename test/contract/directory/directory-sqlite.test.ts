import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openSqliteDirectory } from '../../../src/service/directory/sqlite/sqlite-directory.ts';
import { directoryContract } from './directory.contract.ts';

directoryContract('SQLite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-directory-'));
  const [first, second] = [openSqliteDirectory(folder), openSqliteDirectory(folder)];
  onTestFinished(async () => {
    for (const { close } of [first, second]) await close();
    await rm(folder, { recursive: true });
  });
  return { directory: first.directory, other: second.directory };
});
