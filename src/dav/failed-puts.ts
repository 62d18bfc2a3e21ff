import { type Clock, elapsedMs, type Instant } from '../util/clock.ts';
import { keyOf, type Path } from '../util/path.ts';

/** rclone waits a second after a failed PUT; slower programs and their users get some minutes. */
const REMEMBERED_MS = 15 * 60_000;
/** Beyond it the oldest are forgotten. */
const REMEMBERED_MAX = 10_000;

/**
 * Which PUTs failed lately. rclone removes what a failed PUT may have left behind, and would destroy the
 * version before it (rclone#3263): such a DELETE must be one that can be undone.
 */
export class FailedPuts {
  /** When each failed, the oldest first. */
  readonly #failed = new Map<string, Instant>();

  constructor(private readonly clock: Clock) {}

  note(principal: string, path: Path): void {
    const key = keyFor(principal, path);
    this.#failed.delete(key);
    this.#failed.set(key, this.clock.instant());
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > REMEMBERED_MAX && oldest !== undefined) this.#failed.delete(oldest);
  }

  forget(principal: string, path: Path): void {
    this.#failed.delete(keyFor(principal, path));
  }

  has(principal: string, path: Path): boolean {
    const failed = this.#failed.get(keyFor(principal, path));
    return failed !== undefined && elapsedMs(this.clock, failed) < REMEMBERED_MS;
  }
}

/** A name of a user holds no NUL, and neither does a path. */
function keyFor(principal: string, path: Path): string {
  return `${principal}\0${keyOf(path)}`;
}
