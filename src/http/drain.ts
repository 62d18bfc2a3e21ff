import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Exchange } from './exchange.ts';
import type { ListenerLimits } from './limits.ts';

/** The way down of a listener. */
export class Drain {
  readonly #server: Server;
  readonly #running: ReadonlySet<Exchange>;
  readonly #limits: ListenerLimits;
  readonly #tools: { readonly clock: Clock; readonly log: Log };
  readonly #sockets = new Set<Socket>();
  readonly #closing = new AbortController();
  #allEnded: () => void = () => undefined;
  #closed: Promise<void> | undefined;

  constructor(
    server: Server,
    running: ReadonlySet<Exchange>,
    limits: ListenerLimits,
    tools: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#server = server;
    this.#running = running;
    this.#limits = limits;
    this.#tools = tools;
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Whether `close` has been called. */
  get isOn(): boolean {
    return this.#closed !== undefined;
  }

  /** Aborted when all is closed. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** To be told after each exchange. What began with "keep-alive" before the drain is idle only now. */
  exchangeEnded(): void {
    if (!this.isOn) return;
    this.#server.closeIdleConnections();
    if (this.#running.size === 0) this.#allEnded();
  }

  /** Closes once, however often it is called. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { response } of this.#running) response.shouldKeepAlive = false;
    await this.#runningEnded();
    // None of them has a request any more, or its time is over.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#closing.abort();
  }

  async #runningEnded(): Promise<void> {
    if (this.#running.size === 0) return;
    const { clock, log } = this.#tools;
    const ended = new AbortController();
    this.#allEnded = () => ended.abort();
    const isOver = await clock.sleep(this.#limits.drainGraceMs, ended.signal).then(
      () => true,
      () => false,
    );
    if (isOver)
      log.warn('requests were cut off at the end of the grace time', { requests: this.#running.size });
  }
}
