import type { Server } from 'node:http';
import { endsBefore } from '../util/grace.ts';
import type { Log } from '../util/log.ts';
import type { Connections } from './connections.ts';

/** Graceful shutdown of a server. */
export class Drain {
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #allEnded: (() => void)[] = [];
  #closed: Promise<void> | undefined;
  #isClosingIdle = false;

  constructor(server: Server, connections: Connections, log: Log) {
    this.#server = server;
    this.#connections = connections;
    this.#log = log;
  }

  /** Whether `close` has been called. */
  get isOn(): boolean {
    return this.#closed !== undefined;
  }

  /** Aborted when all is closed. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** Call it after each exchange. A connection whose answer began with "keep-alive" before the drain is idle only now. */
  exchangeEnded(): void {
    if (!this.isOn) return;
    this.#closeIdleSoon();
    if (this.#connections.running.size === 0) for (const ended of this.#allEnded.splice(0)) ended();
  }

  /** Closes once, however often it is called; the first time says how long running exchanges may go on. */
  close(over: AbortSignal): Promise<void> {
    this.#closed ??= this.#close(over);
    return this.#closed;
  }

  /** Resolves when no exchange runs any more: after `close`, which does not wait for those that it cut off. */
  ended(): Promise<void> {
    if (this.#connections.running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#allEnded.push(resolve));
  }

  async #close(over: AbortSignal): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { response } of this.#connections.running) response.shouldKeepAlive = false;
    const { running } = this.#connections;
    if (!(await endsBefore(over, this.ended())))
      this.#log.warn('requests were cut off at the end of the grace time', { requests: running.size });
    // None of them has a request any more, or its time is over.
    for (const connection of this.#connections) connection.destroy();
    await closed;
    this.#closing.abort();
  }

  /** Once for all answers of a moment: it looks at every connection, and thousands of long polls end together. */
  #closeIdleSoon(): void {
    if (this.#isClosingIdle) return;
    this.#isClosingIdle = true;
    setImmediate(() => {
      this.#isClosingIdle = false;
      this.#server.closeIdleConnections();
    });
  }
}
