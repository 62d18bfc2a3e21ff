import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAVGATE, type Peer, start } from '../peers.ts';
import type { Upstream } from './upstream.ts';

/** A way to put WebDAV before the service. */
export interface Rival {
  readonly name: string;
  /** Starts it with nothing known; `home` is its own. */
  start(home: string, upstream: Upstream): Promise<Peer>;
}

/** davgate, open to all as rclone is, with more words for its command line. */
export function davgate(...words: readonly string[]): Rival {
  return {
    name: 'davgate',
    start: (home, { front, token }) =>
      start(
        home,
        'davgate',
        {},
        (port) => [
          ...DAVGATE,
          ...['--listen', `127.0.0.1:${port}`, '--api-url', front.url, '--no-auth'],
          ...['--data-dir', join(home, 'data'), '--cache-dir', join(home, 'cache'), ...words],
        ],
        { ...front.environment, DAVGATE_TOKEN: token },
      ),
  };
}

/** Its `--vfs-cache-mode`; and, where many write at once, commits in batches as its Dropbox backend has it by itself. */
export type RcloneMode = 'off' | 'writes' | 'full' | 'off, batches';

/**
 * `rclone serve webdav` with its Dropbox backend. Without batches a single small file costs it one call and not four,
 * and no half second of waiting for company.
 */
export function rclone(mode: RcloneMode): Rival {
  const [cache = mode, batches] = mode.split(', ');
  return {
    name: `rclone, ${mode}`,
    start: (home, { front, token }) => {
      const config = join(home, 'rclone.conf');
      const kept = { access_token: token, token_type: 'bearer', expiry: '0001-01-01T00:00:00Z' };
      writeFileSync(config, `[drive]\ntype = dropbox\ntoken = ${JSON.stringify(kept)}\n`);
      return start(
        home,
        'rclone',
        {},
        (port) => [
          ...['rclone', 'serve', 'webdav', 'drive:', '--addr', `127.0.0.1:${port}`, '--config', config],
          ...['--vfs-cache-mode', cache, '--cache-dir', join(home, 'cache')],
          // It asks for changes once a minute by itself.
          ...['--poll-interval', '10s', '--dropbox-batch-mode', batches ? 'sync' : 'off'],
        ],
        front.environment,
      );
    },
  };
}
