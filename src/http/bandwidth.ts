import PQueue from 'p-queue';
import type { Bandwidth } from '../config/grant.ts';
import { linkedSignal } from '../util/abort.ts';
import { type Clock, type Instant, instantIn, LONG_AGO, laterOf, remainingMs } from '../util/clock.ts';
import { createLru } from '../util/lru.ts';

/** How much passes at once after a pause: as many bytes as the limit allows in this time, in ms. */
const BURST_MS = 250;

/** A shorter wait is added to the next one, in ms: timers are not more exact, and one for each piece would be many. */
const SHORT_MS = 5;

/** Size of a piece, after which it is another connection's turn: the bytes of `ms` milliseconds, within these bounds. */
const PIECE = { ms: 50, bytesMin: 1024, bytesMax: 64 * 1024 };

/** Maximum number of users whose limits are remembered; the least recently seen is forgotten beyond it. */
const USERS_MAX = 10_000;

/** A token bucket: the time at which it has the tokens for the next byte stands for its content. */
class RateLimit {
  #next: Instant = LONG_AGO;
  readonly #line = new PQueue({ concurrency: 1 });

  constructor(
    readonly bytesPerSecond: number,
    private readonly clock: Clock,
  ) {}

  /** Takes the tokens for `bytes` if they may pass now and nobody waits. */
  takeNow(bytes: number): boolean {
    if (this.#line.size + this.#line.pending > 0 || this.#waitMs >= SHORT_MS) return false;
    this.#take(bytes);
    return true;
  }

  /**
   * Resolves when `bytes` may pass. Callers get their turns in order, and take their tokens only then: one who leaves before
   * has cost the others nothing. Throws the signal's reason.
   */
  async takeInTurn(bytes: number, signal: AbortSignal): Promise<void> {
    const turn = async () => {
      if (this.#waitMs >= SHORT_MS) await this.clock.sleep(this.#waitMs, signal);
      this.#take(bytes);
    };
    await this.#line.add(turn, { signal });
  }

  get #waitMs(): number {
    return remainingMs(this.clock, this.#next);
  }

  #take(bytes: number): void {
    const start = laterOf(this.#next, instantIn(this.clock, -BURST_MS));
    this.#next = instantIn(this.clock, remainingMs(this.clock, start) + (bytes * 1000) / this.bytesPerSecond);
  }
}

/** Lets the bytes of one direction of an exchange pass at the rate of its limits. */
export class Pace {
  readonly #limits: readonly RateLimit[];
  readonly #pieceBytes: number;

  constructor(
    limits: readonly RateLimit[],
    private readonly world: { readonly lifted: AbortSignal },
  ) {
    this.#limits = limits;
    const slowest = limits.reduce((rate, each) => Math.min(rate, each.bytesPerSecond), Infinity);
    const pieceBytes = Math.round((slowest * PIECE.ms) / 1000);
    this.#pieceBytes = Math.min(PIECE.bytesMax, Math.max(PIECE.bytesMin, pieceBytes));
  }

  /** Yields pieces of a body, each when it may pass. Throws the signal's reason. */
  async *received(
    pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      for (let at = 0; at < piece.length; at += this.#pieceBytes)
        await this.#pass(Math.min(this.#pieceBytes, piece.length - at), signal);
      yield piece;
    }
  }

  /** Calls `write` with pieces of `bytes`, each when it may pass. Stops when `signal` is aborted. */
  async send(
    bytes: Uint8Array,
    write: (piece: Uint8Array) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    for (let at = 0; at < bytes.length && !signal.aborted; at += this.#pieceBytes) {
      const piece = bytes.subarray(at, at + this.#pieceBytes);
      await this.#pass(piece.length, signal).catch(() => {});
      if (!signal.aborted) await write(piece);
    }
  }

  async #pass(bytes: number, signal: AbortSignal): Promise<void> {
    const { lifted } = this.world;
    for (const limit of this.#limits) {
      if (lifted.aborted) return;
      if (limit.takeNow(bytes)) continue;
      const over = linkedSignal(signal, lifted);
      await limit.takeInTurn(bytes, over.signal).catch(() => {});
      over.release();
      signal.throwIfAborted();
    }
  }
}

/** The paces of an exchange; `undefined` for a direction without a limit. */
export interface Paces {
  readonly upload: Pace | undefined;
  readonly download: Pace | undefined;
}

interface Limits {
  readonly upload: readonly RateLimit[];
  readonly download: readonly RateLimit[];
}

/** Methods whose requests or answers have content of files. */
const LIMITED: ReadonlySet<string | undefined> = new Set(['GET', 'PUT', 'POST']);

/** The bandwidth limits of a gateway and of its users. They end with `lifted`, so that a drain takes no longer. */
export class BandwidthLimits {
  readonly #whole: Limits;
  readonly #users = createLru<Limits>(USERS_MAX);

  constructor(
    whole: Bandwidth,
    private readonly world: { readonly clock: Clock; readonly lifted: AbortSignal },
  ) {
    this.#whole = this.#limitsOf(whole);
  }

  /** Returns the paces of a request; `undefined` if it is not limited. All exchanges of a user share their limits. */
  pacesOf(
    method: string | undefined,
    user: { readonly name: string; readonly bandwidth?: Bandwidth } | undefined,
  ): Paces | undefined {
    if (!LIMITED.has(method)) return undefined;
    const own = user?.bandwidth && this.#limitsOfUser(user.name, user.bandwidth);
    const pace = (direction: keyof Limits) => {
      const limits = [...(own?.[direction] ?? []), ...this.#whole[direction]];
      return limits.length > 0 ? new Pace(limits, this.world) : undefined;
    };
    return { upload: pace('upload'), download: pace('download') };
  }

  #limitsOfUser(name: string, bandwidth: Bandwidth): Limits {
    // A changed limit takes effect at once.
    const key = JSON.stringify([name, bandwidth]);
    const limits = this.#users.get(key) ?? this.#limitsOf(bandwidth);
    this.#users.set(key, limits);
    return limits;
  }

  #limitsOf({ uploadBytes, downloadBytes }: Bandwidth): Limits {
    const limit = (rate: number | undefined) =>
      rate === undefined ? [] : [new RateLimit(rate, this.world.clock)];
    return { upload: limit(uploadBytes), download: limit(downloadBytes) };
  }
}
