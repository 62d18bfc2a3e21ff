/** Delays before a file is sent again, in ms: some minutes, because a network may come back. */
const DELAYS_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 60_000, 60_000, 60_000];

/** Maximum time by which an answer delays a retry, in ms: a person looks at the page. */
const WAIT_MS_MAX = 10 * 60_000;

/** Statuses after which another try may succeed: no answer, and a drive that is busy. */
export const TRANSIENT: readonly number[] = [0, 429, 502, 503, 504];

/** Returns the seconds in a `Retry-After` field (RFC 9110 §10.2.3). 0: there is none, or a date, which davgate never sends. */
export function waitSecondsIn(field: string | null): number {
  const seconds = Number(field ?? 0);
  return seconds >= 0 ? seconds : 0;
}

/**
 * Counts the retries of one file. Starts again when more of it has arrived, so that a slow upload goes on. Each new beginning
 * leaves one retry fewer, so that an upload that is lost again and again comes to an end.
 */
export class Retries {
  /** Number of retries since more has arrived, and of new beginnings before that. */
  count = 0;
  #beginnings = 0;
  #receivedBytes = 0;

  /**
   * Returns the number of the next retry, from 0, or `undefined` after the last one. `receivedBytes` counts the bytes that the
   * gateway has acknowledged, not those sent: a proxy may read every try and refuse it. It falls when the gateway has lost them.
   */
  next(receivedBytes: number): number | undefined {
    if (receivedBytes < this.#receivedBytes) this.#beginnings++;
    if (receivedBytes > this.#receivedBytes) this.count = this.#beginnings;
    this.#receivedBytes = receivedBytes;
    return this.count < DELAYS_MS.length ? this.count++ : undefined;
  }
}

/**
 * Resolves when a file may be sent again: after the delay of this retry, counted from 0, or after `waitSeconds` if the answer
 * wants more. Without an answer that names a time, it resolves as soon as `network` tells that the computer is online again.
 */
export function waitToRetry(retry: number, waitSeconds: number, network: EventTarget): Promise<void> {
  const waitMs = Math.min(waitSeconds * 1000, WAIT_MS_MAX);
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      network.removeEventListener('online', end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(waitMs, DELAYS_MS[retry] ?? 0));
    if (waitMs === 0) network.addEventListener('online', end);
  });
}
