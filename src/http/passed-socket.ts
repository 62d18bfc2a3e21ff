import type { Server } from 'node:http';
import { ListenError } from './node-server.ts';

/** The first socket that a service manager passes (SD_LISTEN_FDS_START, sd_listen_fds(3)). */
const FIRST_SOCKET = 3;

const PLACE = 'the socket of systemd';

/**
 * Checks that systemd passed one socket to this process, and removes the variables that say so, which programs that davgate
 * starts must not take for their own. Throws `ListenError`.
 */
export function takePassedSocket(environment: NodeJS.ProcessEnv): void {
  const { LISTEN_FDS: count, LISTEN_PID: owner } = environment;
  for (const name of ['LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES']) delete environment[name];
  if (count === undefined || Number(owner) !== process.pid)
    throw new ListenError(
      PLACE,
      'there is none; start davgate by its socket unit (docs/install.md), or write --listen HOST:PORT',
      undefined,
    );
  if (count !== '1')
    throw new ListenError(
      PLACE,
      `there are ${count}, and davgate serves one; leave one ListenStream= in the socket unit`,
      undefined,
    );
}

/**
 * Resolves once the server accepts the connections of the passed socket, with its address; `undefined` for a Unix socket.
 * Throws `ListenError`.
 */
export function listenOnPassedSocket(
  server: Server,
): Promise<{ readonly host: string; readonly port: number } | undefined> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const reason = `the system says ${error.code ?? error}; the socket unit needs ListenStream= and Accept=no`;
      reject(new ListenError(PLACE, reason, error));
    };
    server.once('error', fail);
    server.listen({ fd: FIRST_SOCKET }, () => {
      server.off('error', fail);
      const address = server.address();
      // Node does not know the path of a Unix socket that it did not make.
      const isInternet = typeof address === 'object' && address !== null;
      resolve(isInternet ? { host: address.address, port: address.port } : undefined);
    });
  });
}
