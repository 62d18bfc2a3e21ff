import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type CommandResult, succeed } from './command.ts';

/** rclone with its own configuration and one remote, `drive:`. */
export interface Rclone {
  run(...args: string[]): Promise<CommandResult>;
  /** Runs rclone with a text on standard input. */
  pipe(input: string, ...args: string[]): Promise<CommandResult>;
  /** Mounts `drive:`. Resolves with the mount point. */
  mount(...args: string[]): Promise<{ path: string; unmount(): Promise<void> }>;
  /** Returns the configuration file, in which rclone stores new tokens. */
  configuration(): Promise<string>;
  remove(): Promise<void>;
}

/** Configures rclone's WebDAV backend for a davgate. */
export async function configureRclone(drive: {
  url: string;
  user: string;
  password: string;
  /** `owncloud` by default. */
  vendor?: string;
}): Promise<Rclone> {
  const { stdout } = await succeed('rclone', ['obscure', drive.password]);
  return await configured([
    'type = webdav',
    `url = ${drive.url}`,
    `vendor = ${drive.vendor ?? 'owncloud'}`,
    `user = ${drive.user}`,
    `pass = ${stdout.trim()}`,
  ]);
}

/** The app and the login in rclone's configuration. */
export interface DropboxLogin {
  readonly appKey: string;
  readonly appSecret: string;
  readonly token: string;
  readonly refreshToken: string;
  /** When the token expires. The default is never. */
  readonly expiry?: string;
}

/**
 * Configures rclone's Dropbox backend with upload parts of `partMib`. `environment` directs its hosts to the
 * service.
 */
export async function configureDropboxRclone(
  login: DropboxLogin,
  environment: Readonly<Record<string, string>>,
  partMib: number,
): Promise<Rclone> {
  const token = {
    access_token: login.token,
    token_type: 'bearer',
    refresh_token: login.refreshToken,
    expiry: login.expiry ?? '0001-01-01T00:00:00Z',
  };
  const settings = [
    'type = dropbox',
    `client_id = ${login.appKey}`,
    `client_secret = ${login.appSecret}`,
    `chunk_size = ${partMib}M`,
    `token = ${JSON.stringify(token)}`,
  ];
  // A service on a busy machine refuses a commit that has waited for a second, as the real one does.
  return await configured(settings, environment, COMMIT_RETRIES);
}

/** Rclone's own number of retries of a call. */
const COMMIT_RETRIES = 10;

/** By default there are no retries, which would hide a wrong answer. */
async function configured(
  settings: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  retries = 1,
): Promise<Rclone> {
  const home = await mkdtemp(join(tmpdir(), 'davgate-rclone-'));
  const config = join(home, 'rclone.conf');
  await writeFile(config, `[drive]\n${settings.join('\n')}\n`);
  const tries = ['--retries', '1', '--low-level-retries', String(retries)];
  const common = ['--config', config, ...tries, '--cache-dir', join(home, 'vfs')];
  return {
    run: (...args) => succeed('rclone', [...common, ...args], { environment }),
    pipe: (input, ...args) => succeed('rclone', [...common, ...args], { environment, input }),
    mount: async (...args) => {
      const path = await mkdtemp(join(home, 'mount-'));
      const child = spawn('rclone', [...common, 'mount', 'drive:', path, ...args], {
        stdio: 'inherit',
        env: { ...process.env, ...environment },
      });
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
    configuration: () => readFile(config, 'utf8'),
    remove: () => rm(home, { recursive: true, force: true }),
  };
}

/** Resolves when the kernel lists the mount at `path`; throws if rclone ends before. */
async function mounted(path: string, child: ChildProcess): Promise<void> {
  while (!(await readFile('/proc/self/mounts', 'utf8')).includes(` ${path} `)) {
    if (child.exitCode !== null) throw new Error(`rclone mount ended with ${child.exitCode}`);
    await setTimeout(20);
  }
}
