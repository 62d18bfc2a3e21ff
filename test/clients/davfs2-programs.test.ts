import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientFolder } from '../support/client-folder.ts';
import { succeed } from '../support/command.ts';
import { type DavfsMount, mountDavfs } from '../support/davfs.ts';
import { effort } from '../support/effort.ts';
import { temporaryDirectory } from '../support/program.ts';

// Programs that lock, rename and write parts of many files, on a drive mounted by davfs2.

let local: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  local = await temporaryDirectory();
});
afterAll(() => local.remove());

/** Mounts a folder of the drive, and gives it to `use` twice: the second mount has an empty cache. */
async function onMount(
  name: string,
  first: (path: string) => Promise<void>,
  second: (path: string) => Promise<void>,
): Promise<void> {
  const folder = await clientFolder(name);
  for (const use of [first, second]) {
    const mount: DavfsMount = await mountDavfs(folder);
    try {
      await use(mount.path);
    } finally {
      await mount.unmount();
    }
  }
}

describe('a drive mounted by davfs2', () => {
  test.concurrent('git pushes to a bare repository on the drive, clones it, and finds every object whole', async () => {
    const [work, clone] = [join(local.path, 'work'), join(local.path, 'clone')];
    const identity = ['-c', 'user.name=Tester', '-c', 'user.email=tester@example.org'];
    const git = (directory: string, ...args: readonly string[]) =>
      succeed('git', [...identity, ...args], { directory, environment: { HOME: local.path } });
    const commit = async (directory: string, name: string) => {
      await writeFile(join(directory, name), `${name}\n`.repeat(2_000));
      await git(directory, 'add', '.');
      await git(directory, 'commit', '-q', '-m', name);
    };
    await onMount(
      'git',
      async (path) => {
        const repository = join(path, 'repository.git');
        await git(path, 'init', '-q', '--bare', '-b', 'main', repository);
        await git(local.path, 'init', '-q', '-b', 'main', work);
        for (const name of ['one', 'two']) await commit(work, name);
        await git(work, 'push', '-q', repository, 'main');
        await git(local.path, 'clone', '-q', repository, clone);
        await commit(clone, 'three');
        await git(clone, 'push', '-q');
      },
      async (path) => {
        const repository = join(path, 'repository.git');
        await git(repository, 'fsck', '--full', '--strict');
        expect((await git(repository, 'log', '--format=%s', 'main')).stdout).toBe('three\ntwo\none\n');
      },
    );
  });

  const transactions = effort(40);
  test.concurrent(`SQLite commits ${transactions} transactions to a database on the drive, and it is whole after a remount`, async () => {
    const sqlite = async (path: string, input: string) =>
      (await succeed('sqlite3', ['-bail', join(path, 'data.sqlite')], { input })).stdout;
    const insert = 'INSERT INTO t(x) VALUES (hex(randomblob(500)));\n';
    await onMount(
      'sqlite',
      async (path) => {
        await sqlite(path, `CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT);\n${insert.repeat(transactions)}`);
        await sqlite(path, 'UPDATE t SET x = upper(x) WHERE id % 2; DELETE FROM t WHERE id = 1;');
      },
      async (path) => {
        const answer = await sqlite(path, 'PRAGMA integrity_check; SELECT count(*) FROM t;');
        expect(answer).toBe(`ok\n${transactions - 1}\n`);
      },
    );
  });
});
