import { once } from 'node:events';
import { chmod, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { endsBefore } from '../util/grace.ts';
import type { Log } from '../util/log.ts';

/** Commands that the owner of a data directory can send to the running davgate. */
export interface ControlCommands {
  locks(): Promise<readonly object[]>;
  /** Removes the locks that match every given field, and returns them. */
  removeLocks(choice: Readonly<Record<string, string>>): Promise<readonly object[]>;
}

/** Commands for pending and lost writes. */
export interface JournalCommands {
  list(): Promise<readonly object[]>;
  /** `undefined` unless exactly one write has this id. */
  body(
    id: string,
  ): Promise<{ readonly write: object; readonly bytes: AsyncIterable<Uint8Array> } | undefined>;
  retry(id: string): Promise<CommandOutcome>;
  discard(id: string): Promise<CommandOutcome>;
}

interface CommandOutcome {
  /** The reason of the refusal. */
  readonly refused?: string;
}

export interface ControlOptions {
  /** Path of the socket, in a directory that only this user may enter and only this process uses. */
  readonly socketPath: string;
  readonly commands: ControlCommands;
  readonly journal: JournalCommands;
  /** Returns the address of the drive on this machine, as soon as it has one. */
  readonly address: () => string | undefined;
  readonly log: Log;
}

/**
 * Answers commands on a Unix socket: only users who may read the data reach it, and no browser does. Logs a warning where
 * the system has no such sockets or the path is too long for one.
 */
export async function startControl({ socketPath, log, ...answers }: ControlOptions): Promise<{
  /** Lets running commands go on until `over`. */
  close(over: AbortSignal): Promise<void>;
}> {
  const running = new Set<Promise<unknown>>();
  const server = createServer((request, response) => {
    const work = [answer(request, response, { ...answers, log }), once(response, 'close')];
    const command = Promise.all(work).finally(() => running.delete(command));
    running.add(command);
  });
  const start = async () => {
    // A killed davgate leaves its socket.
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
      log.warn('cannot open the control socket; davgate locks, journal and mount cannot reach this davgate', {
        socket: socketPath,
        reason: error.code,
      });
      return false;
    },
  );
  return {
    async close(over) {
      if (!isOn) return;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await endsBefore(over, Promise.all(running));
      // Node counts a connection that never sent a request as busy, and would wait for it forever.
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
  { commands, journal, address, log }: Omit<ControlOptions, 'socketPath'>,
): Promise<void> {
  try {
    const { pathname, searchParams } = new URL(url, 'http://control');
    if (pathname.startsWith('/journal')) {
      const id = searchParams.get('id') ?? '';
      return await answerJournal(response, `${method} ${pathname.slice('/journal'.length)}`, { id, journal });
    }
    if (method === 'GET' && pathname === '/address') return say(response, 200, address());
    if (pathname !== '/locks') return say(response, 404, undefined);
    if (method === 'GET') return say(response, 200, await commands.locks());
    if (method !== 'DELETE') return say(response, 405, undefined);
    return say(response, 200, await commands.removeLocks(Object.fromEntries(searchParams)));
  } catch (error) {
    log.error('control command failed', { method, reason: String(error) });
    // Once a part of a body was sent, only a broken connection shows the failure.
    if (response.headersSent) response.destroy();
    else say(response, 500, undefined);
  }
}

async function answerJournal(
  response: ServerResponse,
  command: string,
  { id, journal }: { readonly id: string; readonly journal: JournalCommands },
): Promise<void> {
  const tell = (outcome: CommandOutcome) => say(response, outcome.refused === undefined ? 200 : 409, outcome);
  switch (command) {
    case 'GET ':
      return say(response, 200, await journal.list());
    case 'GET /write': {
      const found = await journal.body(id);
      return say(response, found ? 200 : 404, found?.write);
    }
    case 'GET /body': {
      const found = await journal.body(id);
      if (!found) return say(response, 404, undefined);
      response.writeHead(200, { 'Content-Type': 'application/octet-stream', Connection: 'close' });
      return pipeline(found.bytes, response);
    }
    case 'POST /retry':
      return tell(await journal.retry(id));
    case 'DELETE ':
      return tell(await journal.discard(id));
    default:
      return say(response, 405, undefined);
  }
}

function say(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' });
  response.end(JSON.stringify(value ?? null));
}
