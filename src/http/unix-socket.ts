import { chmod, lstat, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { SocketAddress } from '../config/address.ts';
import { ListenError } from './node-server.ts';

const FAILURES: Readonly<Record<string, string>> = {
  // Node reports a missing directory so too.
  EACCES:
    'its directory does not exist, or this user may not make files there; make it, or change its permissions',
  EINVAL: 'the path is too long for a socket; choose one of at most 100 characters',
};

/** Resolves once the server listens. Replaces a socket without a listener. Throws `ListenError`. */
export async function listenOnSocket(server: Server, { socketPath, mode }: SocketAddress): Promise<void> {
  const fail = (reason: string, cause: unknown) => new ListenError(`unix:${socketPath}`, reason, cause);
  try {
    await listening(server, socketPath).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error;
      if (!(await lstat(socketPath)).isSocket())
        throw fail('there is another file; remove it, or choose another path with --listen', error);
      if (await hasListener(socketPath))
        throw fail('another process listens there; stop it, or choose another path with --listen', error);
      // A process that was killed leaves its socket.
      await rm(socketPath, { force: true });
      await listening(server, socketPath);
    });
    await chmod(socketPath, mode);
  } catch (error) {
    if (error instanceof ListenError) throw error;
    const { code = '' } = error as NodeJS.ErrnoException;
    throw fail(FAILURES[code] ?? `the system says ${code || error}`, error);
  }
}

function listening(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Whether a process accepts connections. An unknown failure counts as one: its socket must not be removed. */
function hasListener(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT');
    });
  });
}
