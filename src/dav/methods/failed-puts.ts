import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import { keyOf, type Path } from '../../util/path.ts';

/** How long a failed PUT is remembered, in ms. rclone reacts after a second; slower programs and users take minutes. */
const REMEMBERED_MS = 15 * 60_000;
/** Maximum number of failed PUTs remembered; the oldest are dropped beyond it. */
const REMEMBERED_MAX = 10_000;

/**
 * The PUTs that failed recently. rclone deletes the path of a failed PUT to clean up, and so would destroy the previous
 * version (rclone#3263): such a DELETE must be recoverable.
 */
export class FailedPuts {
  /** Times of failed PUTs, oldest first. */
  readonly #failures = new Map<string, Instant>();

  readonly #since: Instant;

  constructor(private readonly clock: Clock) {
    this.#since = clock.instant();
  }

  /** Whether it has all PUTs of the time that it remembers: davgate has not just been started. */
  get coversAll(): boolean {
    return elapsedMs(this.clock, this.#since) >= REMEMBERED_MS;
  }

  add(principal: string, path: Path): void {
    const key = keyFor(principal, path);
    this.#failures.delete(key);
    this.#failures.set(key, this.clock.instant());
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > REMEMBERED_MAX && oldest !== undefined) this.#failures.delete(oldest);
  }

  delete(principal: string, path: Path): void {
    this.#failures.delete(keyFor(principal, path));
  }

  has(principal: string, path: Path): boolean {
    const failure = this.#failures.get(keyFor(principal, path));
    return failure !== undefined && elapsedMs(this.clock, failure) < REMEMBERED_MS;
  }
}

/** NUL separates the two: neither user names nor paths contain it. */
function keyFor(principal: string, path: Path): string {
  return `${principal}\0${keyOf(path)}`;
}
