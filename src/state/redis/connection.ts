import { createClient, RESP_TYPES } from '@redis/client';
import { ageMs, type Clock, momentNow } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { waitAtMost } from '../../util/wait.ts';
import { StateUnavailable } from '../errors.ts';
import { asStateError, isLoading, redacted } from './failure.ts';

/** Deadline of a command, including reconnection, in ms: longer than a failover, shorter than clients wait. */
export const ANSWER_MS_MAX = 10_000;

/** Deadline of a connection attempt, in ms. */
const CONNECT_MS_MAX = 5_000;

/** A connection that received nothing for this long is closed, in ms; pings make a live one receive something. */
const SILENCE_MS_MAX = 15_000;
const PING_EVERY_MS = 5_000;

/** Shortest time between two attempts to reconnect, in ms; the longest follows. */
const RECONNECT_MS = 50;
const RECONNECT_MS_MAX = 2_000;

/** How long a command waits before it is repeated to a Redis that is loading its data, in ms. */
const LOADING_MS = 100;

/** Maximum number of unanswered commands: far above normal use, and a bound while Redis is unreachable. */
const WAITING_MAX = 100_000;

export interface ConnectionOptions {
  /** Address, `redis://` or `rediss://`. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Log;
}

type Client = ReturnType<typeof clientFor>;

/**
 * The only connection of a process. It reconnects without limit; a command fails at its deadline while Redis is
 * unreachable.
 */
export class Connection {
  /** Address for messages, without the password. */
  readonly shownUrl: string;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #log: Log;
  #wasReady = false;
  #isAway = false;
  #isClosed = false;

  constructor({ url, clock, log }: ConnectionOptions) {
    this.shownUrl = redacted(url);
    this.#clock = clock;
    this.#log = log;
    // An unreachable Redis at start means a wrong setting; later the connection waits for it.
    this.#client = clientFor(url, (retries) =>
      this.#wasReady ? Math.min(RECONNECT_MS * 2 ** Math.min(retries, 16), RECONNECT_MS_MAX) : false,
    );
    this.#client.on('error', (error) => this.#lost(error));
    this.#client.on('ready', () => this.#found());
  }

  /** Connects. Throws `StateUnavailable`. */
  async connect(): Promise<void> {
    try {
      await this.#inTime(() => this.#client.connect());
    } catch (error) {
      this.#isClosed = true;
      this.#client.destroy();
      throw error;
    }
  }

  /** Returns the answer to one command. Throws `StateUnavailable`; the command may have taken effect nevertheless. */
  command(...words: (string | Buffer)[]): Promise<unknown> {
    return this.#inTime((abortSignal) =>
      this.#whenLoaded(() => this.#client.sendCommand(words, { abortSignal }), abortSignal),
    );
  }

  /** Like `command`, for an answer in bytes. */
  bytes(...words: (string | Buffer)[]): Promise<unknown> {
    const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer };
    return this.#inTime((abortSignal) =>
      this.#whenLoaded(() => this.#client.sendCommand(words, { abortSignal, typeMapping }), abortSignal),
    );
  }

  /** Runs a Lua script atomically. Redis keeps the compiled script by its text. */
  script(text: string, keys: readonly string[], words: readonly (string | Buffer)[]): Promise<unknown> {
    return this.command('EVAL', text, String(keys.length), ...keys, ...words);
  }

  /** Refuses new commands, and waits for the outstanding answers. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    const closing = this.#inTime(() => this.#client.close());
    this.#isClosed = true;
    // A Redis that no longer answers must not delay the shutdown.
    await closing.catch(() => {});
    this.#client.destroy();
  }

  async #inTime<T>(work: (late: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error('the state is closed');
    const late = new AbortController();
    try {
      return await waitAtMost(this.#clock, ANSWER_MS_MAX, work(late.signal), () => {
        throw new StateUnavailable(
          this.shownUrl,
          `no answer within ${ANSWER_MS_MAX / 1000} s; check that Redis runs and is reachable`,
        );
      });
    } catch (error) {
      throw asStateError(error, this.shownUrl);
    } finally {
      // A command that was not sent by then must not run after its failure was reported.
      late.abort();
    }
  }

  /**
   * Repeats a command that Redis refuses because it has just started and is still loading its data: it has not executed
   * the command. Throws that refusal when there is no time left for another attempt.
   */
  async #whenLoaded<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const begun = momentNow(this.#clock);
    for (;;) {
      try {
        return await send();
      } catch (error) {
        const isOver = ageMs(this.#clock, begun) + LOADING_MS >= ANSWER_MS_MAX;
        if (!isLoading(error) || isOver) throw error;
        await this.#clock.sleep(LOADING_MS, signal);
      }
    }
  }

  #lost(error: unknown): void {
    if (this.#isAway || !this.#wasReady || this.#isClosed) return;
    this.#isAway = true;
    const { message } = asError(asStateError(error, this.shownUrl));
    this.#log.warn('the shared state is away; trying to reach it again', { reason: message });
  }

  #found(): void {
    if (this.#isAway) this.#log.info('the shared state is back', { redis: this.shownUrl });
    this.#wasReady = true;
    this.#isAway = false;
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function clientFor(url: string, reconnectStrategy: (retries: number) => number | false) {
  return createClient({
    url,
    // The older protocol is sufficient, and every proxy in front of Redis supports it.
    RESP: 2,
    maintNotifications: 'disabled',
    disableClientInfo: true,
    name: 'davgate',
    pingInterval: PING_EVERY_MS,
    // The library's own limit of 5 s would expire before ours.
    commandOptions: { timeout: 0 },
    commandsQueueMaxLength: WAITING_MAX,
    socket: { connectTimeout: CONNECT_MS_MAX, socketTimeout: SILENCE_MS_MAX, reconnectStrategy },
  });
}
