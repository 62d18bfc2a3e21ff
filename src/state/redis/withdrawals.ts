import { type Clock, type Instant, instantIn, remainingMs } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { type RetryPauses, retryPauseMs } from '../../util/wait.ts';

/** Pauses between attempts while Redis is away: short, because a client repeats its request soon after its return. */
const PAUSES: RetryPauses = { firstMs: 100, maxMs: 1_000 };

/** Maximum number of waiting withdrawals, a bound while Redis is away: the oldest are dropped, and their locks expire. */
const WAITING_MAX = 10_000;

interface Withdrawal {
  /** Resolves with whether there was a lock to remove. */
  readonly run: () => Promise<boolean>;
  /** When the lock or claim has expired by itself. */
  readonly end: Instant;
}

/**
 * Removes, in the background, locks and claims that Redis may have created for requests that have failed, because its answer
 * did not arrive: nobody else could remove them before they expire.
 */
export class Withdrawals {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #waiting = new Map<string, Withdrawal>();
  readonly #closed = new AbortController();
  #isRunning = false;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Calls `run` until it succeeds, for at most `lastsMs`. */
  add(id: string, lastsMs: number, run: () => Promise<boolean>): void {
    const [oldest] = this.#waiting.size < WAITING_MAX ? [] : this.#waiting.keys();
    if (oldest !== undefined) this.#waiting.delete(oldest);
    this.#waiting.set(id, { run, end: instantIn(this.#clock, lastsMs) });
    // Rejects only when its signal aborts.
    if (!this.#isRunning) this.#runAll(this.#closed.signal).catch(() => {});
  }

  /** Makes a last attempt. The connection waits for its answers when it closes. */
  close(): void {
    this.#closed.abort();
    for (const { run } of this.#waiting.values()) run().catch(() => {});
    this.#waiting.clear();
  }

  async #runAll(signal: AbortSignal): Promise<void> {
    this.#isRunning = true;
    let locks = 0;
    let failures = 0;
    for (let next = this.#next(); next && !signal.aborted; next = this.#next()) {
      const [id, withdrawal] = next;
      try {
        if (await withdrawal.run()) locks += 1;
        failures = 0;
      } catch {
        this.#waiting.set(id, withdrawal);
        failures += 1;
        await this.#clock.sleep(retryPauseMs(PAUSES, failures), signal);
      }
    }
    this.#isRunning = false;
    if (locks > 0) this.#log.info('removed locks whose requests failed while Redis was away', { locks });
  }

  /** Takes the first that has not expired. */
  #next(): readonly [id: string, withdrawal: Withdrawal] | undefined {
    for (const [id, withdrawal] of this.#waiting) {
      this.#waiting.delete(id);
      if (remainingMs(this.#clock, withdrawal.end) > 0) return [id, withdrawal];
    }
    return undefined;
  }
}
