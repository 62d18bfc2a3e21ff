import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { succeed } from './command.ts';

/** A drive mounted by davfs2 with its own cache. Needs root and /dev/fuse. */
export interface DavfsMount {
  readonly path: string;
  /** Copies a file or folder with `cp -rL`. */
  copyIn(source: string, name: string): Promise<void>;
  /** Unmounts. Resolves when every write was sent. */
  unmount(): Promise<void>;
}

/** Mounts a drive. `settings` are further lines of davfs2's configuration. */
export async function mountDavfs(
  drive: { url: string; user: string; password: string },
  settings: readonly string[] = [],
): Promise<DavfsMount> {
  const home = await mkdtemp(join(tmpdir(), 'davgate-davfs-'));
  const path = join(home, 'mount');
  await mkdir(path);
  await mkdir(join(home, 'cache'));
  // davfs2 drops root's rights and writes its cache as its own user.
  await chmod(home, 0o755);
  await chmod(join(home, 'cache'), 0o777);
  const secrets = join(home, 'secrets');
  await writeFile(secrets, `"${drive.url}" "${drive.user}" "${drive.password}"\n`);
  await chmod(secrets, 0o600);
  const configuration = join(home, 'davfs2.conf');
  // buf_size: at its default every readdir fails with davfs2 1.6 and a recent kernel, on any server.
  const lines = ['buf_size 1024', 'delay_upload 0', 'cache_size 500', `secrets ${secrets}`, ...settings];
  await writeFile(configuration, `${[...lines, `cache_dir ${join(home, 'cache')}`].join('\n')}\n`);
  await succeed('mount', ['-t', 'davfs', '-o', `conf=${configuration},uid=0`, drive.url, path]);
  return {
    path,
    copyIn: async (source, name) => {
      await succeed('cp', ['-rL', source, join(path, name)]);
    },
    unmount: async () => {
      await succeed('umount', [path]);
      await rm(home, { recursive: true, force: true });
    },
  };
}
