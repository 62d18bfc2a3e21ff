import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CommandResult, succeed } from './command.ts';

/** rclone with one remote, `drive:`, and a configuration of its own. */
export interface Rclone {
  run(...args: string[]): Promise<CommandResult>;
  /** Resolves with the folder where `drive:` is mounted. */
  mount(): Promise<{ path: string; unmount(): Promise<void> }>;
  remove(): Promise<void>;
}

export async function configureRclone(drive: {
  url: string;
  user: string;
  password: string;
}): Promise<Rclone> {
  const home = await mkdtemp(join(tmpdir(), 'davgate-rclone-'));
  const { stdout } = await succeed('rclone', ['obscure', drive.password]);
  const settings = [
    `url = ${drive.url}`,
    'vendor = owncloud',
    `user = ${drive.user}`,
    `pass = ${stdout.trim()}`,
  ];
  const config = join(home, 'rclone.conf');
  await writeFile(config, `[drive]\ntype = webdav\n${settings.join('\n')}\n`);
  // One try: a retry would hide a wrong answer.
  const common = [
    '--config',
    config,
    '--retries',
    '1',
    '--low-level-retries',
    '1',
    '--cache-dir',
    join(home, 'vfs'),
  ];
  return {
    run: (...args) => succeed('rclone', [...common, ...args]),
    mount: async () => {
      const path = join(home, 'mount');
      await mkdir(path, { recursive: true });
      const child = spawn('rclone', [...common, 'mount', 'drive:', path], { stdio: 'inherit' });
      await mounted(path, child);
      return {
        path,
        unmount: async () => {
          const closed = once(child, 'close');
          await succeed('fusermount3', ['-u', path]);
          await closed;
        },
      };
    },
    remove: () => rm(home, { recursive: true, force: true }),
  };
}

/** The kernel lists a mount when it is there; until then rclone is still at work, or has ended. */
async function mounted(path: string, child: ChildProcess): Promise<void> {
  while (!(await readFile('/proc/self/mounts', 'utf8')).includes(` ${path} `)) {
    if (child.exitCode !== null) throw new Error(`rclone mount ended with ${child.exitCode}`);
    await new Promise(setImmediate);
  }
}
