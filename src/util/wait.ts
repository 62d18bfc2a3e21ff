import { linkedSignal, onAbort } from './abort.ts';
import type { Clock } from './clock.ts';

/** A condition whose next change any number of tasks may await. */
export class Condition {
  #waiters = new Set<() => void>();

  /** Resolves at the next `notify`; rejects with the signal's reason if that is aborted first. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        removeListener();
        resolve();
      };
      this.#waiters.add(wake);
      const removeListener = onAbort(signal, (reason) => {
        this.#waiters.delete(wake);
        reject(reason);
      });
    });
  }

  /** Wakes all tasks that wait now. */
  notify(): void {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    for (const wake of waiters) wake();
  }
}

/** The sleep of one background loop, which a ring ends early. */
export class Alarm {
  #rung = new AbortController();

  constructor(private readonly clock: Clock) {}

  /**
   * Resolves after `ms` milliseconds (`Infinity`: never by itself), and at once when the alarm rings, has rung since
   * the last sleep, or `signal` is aborted. Never rejects.
   */
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const over = linkedSignal(this.#rung.signal, ...(signal ? [signal] : []));
    const end = ms === Number.POSITIVE_INFINITY ? aborted(over.signal) : this.clock.sleep(ms, over.signal);
    await end.catch(() => {});
    over.release();
    if (this.#rung.signal.aborted) this.#rung = new AbortController();
  }

  ring(): void {
    this.#rung.abort();
  }
}

/**
 * Returns the result of `work`, or that of `onLate` when `work` takes longer than `ms` milliseconds; `onLate` may
 * throw. Late work continues; stopping it is up to the caller.
 */
export async function waitAtMost<T, Late>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  onLate: () => Late,
): Promise<T | Late> {
  const over = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(ms, over.signal).then(onLate)]);
  } finally {
    over.abort();
  }
}

/** Pauses between retries, in ms. */
export interface RetryPauses {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Returns the pause after `failures` failures in a row, at least one: doubled each time. */
export function retryPauseMs({ firstMs, maxMs }: RetryPauses, failures: number): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1));
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => onAbort(signal, reject));
}
