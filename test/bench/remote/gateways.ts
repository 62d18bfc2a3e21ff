import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAVGATE, type Peer, start } from '../peers.ts';
import type { Upstream } from './upstream.ts';

/** A gateway from WebDAV to the service. */
export interface Rival {
  readonly name: string;
  /** Starts the gateway with empty caches and its own folder `home`. */
  start(home: string, upstream: Upstream): Promise<Peer>;
}

/** Returns davgate without authentication, like rclone, with more arguments. */
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

/** rclone's `--vfs-cache-mode`. With `batches`, commits are batched, as is the default of its Dropbox backend. */
export type RcloneMode = 'off' | 'writes' | 'full' | 'off, batches';

/**
 * Returns `rclone serve webdav` with its Dropbox backend. Without batches a single small file needs one call
 * instead of four, and no wait of half a second for other files.
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
          // Its default is one poll a minute.
          ...['--poll-interval', '10s', '--dropbox-batch-mode', batches ? 'sync' : 'off'],
        ],
        front.environment,
      );
    },
  };
}
