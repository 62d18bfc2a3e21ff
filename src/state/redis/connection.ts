import { createHash } from 'node:crypto';
import { ErrorReply, RESP_TYPES } from '@redis/client';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { redactedAddress, redisAddressOf } from '../../util/redis-address.ts';
import { waitAtMost } from '../../util/wait.ts';
import { StateUnavailable } from '../errors.ts';
import { type Client, type Server, sentinelClient, serverClient, type Word } from './client.ts';
import { clusterClient } from './cluster-client.ts';
import { asStateError, isLoading, isUnknownScript } from './failure.ts';

/** Deadline of a command that was sent, in ms: longer than a pause of Redis, shorter than clients wait. */
export const ANSWER_MS_MAX = 10_000;

/** Time between two questions at the start whether Redis has loaded its data, in ms. */
const LOADING_MS = 100;

export interface ConnectionOptions {
  /** Address, as `redisAddressOf` parses it. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The only connection of a process. It reconnects without limit. While Redis is away, a command waits a moment for its
 * return (`BRIDGE_MS`), which hides a restart; once that moment has passed, commands fail at once.
 */
export class Connection {
  /** Address for messages, without the password. */
  readonly shownUrl: string;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #outstanding = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor({ url, clock, log }: ConnectionOptions) {
    this.shownUrl = redactedAddress(url);
    this.#clock = clock;
    this.#log = log;
    const address = redisAddressOf(url);
    if (!address) throw new Error('not the address of a Redis');
    this.#client = CLIENTS[address.kind]({
      address,
      onAway: (error) => this.#log.warn(AWAY, { reason: this.#messageOf(error) }),
      onBack: () => this.#log.info('the shared state is back', { redis: this.shownUrl }),
    });
  }

  /** Connects, and waits for a Redis that is still loading its data. Throws `StateUnavailable`. */
  async connect(): Promise<void> {
    try {
      await this.#inTime(async (late) => {
        await this.#client.connect();
        await Promise.all(this.#client.servers().map((server) => this.#untilLoaded(server, late)));
      });
    } catch (error) {
      this.#isClosed = true;
      this.#client.destroy();
      throw error;
    }
  }

  /** Returns the answer to one command. Throws `StateUnavailable`; the command may have taken effect nevertheless. */
  command(...words: Word[]): Promise<unknown> {
    const key = keyOf(words);
    return this.#sent(this.#client.serverOf(key), ({ send }, abortSignal) =>
      send(words, { abortSignal }, key),
    );
  }

  /** Returns a `command` for each primary of a cluster, or for the only one: for commands without a key. */
  primaries(): readonly ((...words: Word[]) => Promise<unknown>)[] {
    return this.#client.servers().map(
      (server) =>
        (...words) =>
          this.#sent(server, ({ send }, abortSignal) => send(words, { abortSignal })),
    );
  }

  /**
   * Returns a `command` for the primary that has `key`: for commands without a key about changes that it has just answered.
   * They fail at once while Redis is away, because what is there afterwards may never have had these changes.
   */
  primaryOf(key: string): (...words: Word[]) => Promise<unknown> {
    const server = this.#client.serverOf(key);
    return (...words) =>
      this.#sent(
        server,
        ({ send }, abortSignal) => send(words, { abortSignal }, key),
        async () => server.circuit.check(),
      );
  }

  /**
   * Runs a Lua script atomically. Redis knows it by its digest; a Redis that does not, after a restart or a failover,
   * gets the text once. Functions would need no text either, but hosted Redis often forbids to load them, and Redis
   * before 7 has none.
   */
  script(
    text: string,
    keys: readonly string[],
    words: readonly Word[],
    answer: 'text' | 'bytes' = 'text',
  ): Promise<unknown> {
    const [key] = keys;
    const rest = [String(keys.length), ...keys, ...words];
    const types = answer === 'bytes' && { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };
    return this.#sent(this.#client.serverOf(key), async ({ send }, abortSignal) => {
      const options = { abortSignal, ...types };
      try {
        return await send(['EVALSHA', digestOf(text), ...rest], options, key);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return send(['EVAL', text, ...rest], options, key);
      }
    });
  }

  /** Refuses new commands, and waits for the outstanding answers. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // Each has its deadline, so that a Redis that no longer answers cannot delay the shutdown for long.
    await Promise.allSettled(this.#outstanding);
    this.#client.destroy();
  }

  /** Returns why Redis, or a primary of its cluster, cannot be reached now; `undefined` while it can. */
  trouble(): string | undefined {
    const away = this.#client.servers().find(({ circuit }) => circuit.error !== undefined);
    return away && this.#messageOf(away.circuit.error);
  }

  async #inTime<T>(work: (late: AbortSignal) => Promise<T>): Promise<T> {
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

  async #untilLoaded({ send }: Server, late: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await send(['PING']);
        return;
      } catch (error) {
        if (!isLoading(error)) {
          // A user without the right to ping can use Redis nevertheless.
          if (error instanceof ErrorReply) return;
          throw error;
        }
        await this.#clock.sleep(LOADING_MS, late);
      }
    }
  }

  /** Sends a command when Redis can be reached, and again if Redis was still loading its data. */
  async #sent(
    server: Server,
    work: (server: Server, late: AbortSignal) => Promise<unknown>,
    reachable = () => server.circuit.pass(),
  ): Promise<unknown> {
    if (this.#isClosed) throw new Error('the state is closed');
    const answer = this.#inTime(async (late) => {
      for (;;) {
        await reachable();
        late.throwIfAborted();
        try {
          return await work(server, late);
        } catch (error) {
          if (!isLoading(error)) throw error;
          server.circuit.lost(error);
        }
      }
    });
    this.#outstanding.add(answer);
    try {
      return await answer;
    } finally {
      this.#outstanding.delete(answer);
    }
  }

  #messageOf(error: unknown): string {
    return asError(asStateError(error, this.shownUrl)).message;
  }
}

const AWAY = 'the shared state is away; trying to reach it again';

/** Digests of the scripts by their text. The scripts are constants, so that there are few. */
const digests = new Map<string, string>();

function digestOf(script: string): string {
  let digest = digests.get(script);
  if (digest === undefined) {
    digest = createHash('sha1').update(script).digest('hex');
    digests.set(script, digest);
  }
  return digest;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Returns the key by which a cluster finds the node of a command; `undefined` for a command without keys. */
function keyOf([name, first]: readonly Word[]): string | undefined {
  return KEYLESS.has(String(name)) || first === undefined ? undefined : String(first);
}

const KEYLESS: ReadonlySet<string> = new Set(['CONFIG', 'PING', 'SCAN', 'TIME']);

const CLIENTS = { server: serverClient, sentinel: sentinelClient, cluster: clusterClient } as const;
