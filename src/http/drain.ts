import type { Server } from 'node:http';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Connections } from './connections.ts';
import type { ListenerLimits } from './limits.ts';

/** Graceful shutdown of a server. */
export class Drain {
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #limits: ListenerLimits;
  readonly #tools: { readonly clock: Clock; readonly log: Log };
  readonly #closing = new AbortController();
  #allEnded: (() => void)[] = [];
  #closed: Promise<void> | undefined;
  #isClosingIdle = false;

  constructor(
    server: Server,
    connections: Connections,
    limits: ListenerLimits,
    tools: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#server = server;
    this.#connections = connections;
    this.#limits = limits;
    this.#tools = tools;
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

  /** Closes once, however often it is called. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Resolves when no exchange runs any more: after `close`, which does not wait for those that it cut off. */
  ended(): Promise<void> {
    if (this.#connections.running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#allEnded.push(resolve));
  }

  async #close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { response } of this.#connections.running) response.shouldKeepAlive = false;
    await this.#runningEnded();
    // None of them has a request any more, or its time is over.
    for (const connection of this.#connections) connection.destroy();
    await closed;
    this.#closing.abort();
  }

  async #runningEnded(): Promise<void> {
    const { clock, log } = this.#tools;
    const { running } = this.#connections;
    if (running.size === 0) return;
    const ended = new AbortController();
    void this.ended().then(() => ended.abort());
    const isOver = await clock.sleep(this.#limits.drainGraceMs, ended.signal).then(
      () => true,
      () => false,
    );
    if (isOver) log.warn('requests were cut off at the end of the grace time', { requests: running.size });
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
