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
  /** Whether `announce` or `close` has been called. */
  isAnnounced = false;
  /** Whether `close` has been called. */
  isOn = false;
  #allEnded: (() => void)[] = [];
  #closed: Promise<void> | undefined;
  #isClosingIdle = false;

  constructor(server: Server, connections: Connections, log: Log) {
    this.#server = server;
    this.#connections = connections;
    this.#log = log;
  }

  /** Aborted when all connections are closed. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** Must be called after each exchange during the drain: a connection whose answer promised keep-alive is idle now. */
  exchangeEnded(): void {
    this.#closeIdleSoon();
    if (this.#connections.running.size === 0) for (const ended of this.#allEnded.splice(0)) ended();
  }

  /**
   * Closes each HTTP/1.1 connection after its next answer, so that load balancers and clients connect to another gateway.
   * Everything else goes on.
   */
  announce(): void {
    this.isAnnounced = true;
    for (const { response } of this.#connections.running) response.shouldKeepAlive = false;
  }

  /** Closes the server once. The first call's `over` ends the running exchanges. */
  close(over: AbortSignal): Promise<void> {
    this.isOn = true;
    this.#closed ??= this.#close(over);
    return this.#closed;
  }

  /** Resolves when no exchange runs any more, including those that `close` cut off. */
  ended(): Promise<void> {
    if (this.#connections.running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#allEnded.push(resolve));
  }

  async #close(over: AbortSignal): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.announce();
    // HTTP/2 clients learn that their connection takes no new request. It ends with the last answer.
    const sent = [...this.#connections].flatMap((connection) => connection.endSession() ?? []);
    const { running } = this.#connections;
    if (!(await endsBefore(over, this.ended())))
      this.#log.warn('requests cut off at the end of the grace period', { requests: running.size });
    await endsBefore(over, Promise.all(sent));
    // These are idle, or the grace period is over.
    for (const connection of this.#connections) connection.destroy();
    await closed;
    this.#closing.abort();
  }

  /** Closes idle connections once for all answers of a moment: it visits every connection, and thousands of long polls end together. */
  #closeIdleSoon(): void {
    if (this.#isClosingIdle) return;
    this.#isClosingIdle = true;
    setImmediate(() => {
      this.#isClosingIdle = false;
      this.#server.closeIdleConnections();
    });
  }
}
