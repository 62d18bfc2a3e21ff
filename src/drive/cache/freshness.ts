import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';

/** How long one long poll lasts, in ms: short enough for firewalls that forget quiet connections. */
export const POLL_MS = 90_000;

/**
 * Maximum silence of the feed, in ms: the service may add 90 s to a poll. A longer silence means that the machine has
 * slept, or that the service asked for a pause, and changes go unnoticed.
 */
const SILENCE_MS_MAX = POLL_MS + 120_000;

/** Whether the cache can be trusted: written by the change feed, read by the cache. */
export class Freshness {
  #isAlive = false;
  /** Time of the last report. */
  #heard: Moment | undefined;

  constructor(
    private readonly clock: Clock,
    /** How long cached answers are used while the feed is down, in ms. */
    private readonly staleMs: number,
  ) {}

  /** Whether the feed reports changes as they happen. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Whether the feed counts as alive, but has been silent for too long. */
  get isSilent(): boolean {
    return this.#isAlive && this.#silentMs >= SILENCE_MS_MAX;
  }

  /** Whether an answer requested at `asked` may still be used. */
  isFresh(asked: Moment): boolean {
    if (this.#isAlive && !this.isSilent) return true;
    return Math.min(ageMs(this.clock, asked), this.#silentMs) < this.staleMs;
  }

  /** Records that the feed has reported everything up to now. */
  heard(): void {
    this.#heard = momentNow(this.clock);
  }

  up(): void {
    this.#isAlive = true;
  }

  down(): void {
    if (this.#isAlive && !this.isSilent) this.heard();
    this.#isAlive = false;
  }

  get #silentMs(): number {
    return this.#heard ? ageMs(this.clock, this.#heard) : Number.POSITIVE_INFINITY;
  }
}
