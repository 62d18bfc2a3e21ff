import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Log } from '../util/log.ts';

/** What the owner of a data directory may ask of the davgate that runs with it. */
export interface ControlCommands {
  locks(): Promise<readonly object[]>;
  /** Ends the locks that fit all that is given, and returns them. */
  removeLocks(choice: Readonly<Record<string, string>>): Promise<readonly object[]>;
}

export interface ControlOptions {
  /** In a directory that nobody else may enter, held by this process alone. */
  readonly socketPath: string;
  readonly commands: ControlCommands;
  readonly log: Log;
}

/**
 * Answers the commands on a socket in the file system: only who may read the data itself gets to it, and no browser.
 * Where the system has no such sockets, or the path is too long for one, a warning is all.
 */
export async function startControl({ socketPath, commands, log }: ControlOptions): Promise<{
  close(): Promise<void>;
}> {
  const running = new Set<Promise<unknown>>();
  const server = createServer((request, response) => {
    const work = [answer(request, response, commands, log), once(response, 'close')];
    const command = Promise.all(work).finally(() => running.delete(command));
    running.add(command);
  });
  const start = async () => {
    // A davgate that was killed leaves its own.
    await rm(socketPath, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(socketPath, resolve);
    });
    await chmod(socketPath, 0o600);
  };
  const isOn = await start().then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      log.warn('davgate locks cannot ask this davgate', { socket: socketPath, reason: error.code });
      return false;
    },
  );
  return {
    async close() {
      if (!isOn) return;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all(running);
      // Node counts a connection that never asked anything as busy, and would wait for it for ever.
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
  commands: ControlCommands,
  log: Log,
): Promise<void> {
  try {
    const { pathname, searchParams } = new URL(url, 'http://control');
    if (pathname !== '/locks') return say(response, 404, undefined);
    if (method === 'GET') return say(response, 200, await commands.locks());
    if (method !== 'DELETE') return say(response, 405, undefined);
    return say(response, 200, await commands.removeLocks(Object.fromEntries(searchParams)));
  } catch (error) {
    log.error('a command failed', { method, reason: String(error) });
    return say(response, 500, undefined);
  }
}

function say(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' });
  response.end(JSON.stringify(value ?? null));
}
