import { createHash } from 'node:crypto';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';

/** More guesses than a person needs, fewer than a program wants. */
const GUESSES_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
/** Names whose guesses are counted at once; the oldest count is forgotten beyond that. */
const COUNTED_MAX = 10_000;

/** How long to wait after one guess too many, for a `Retry-After`. */
export const GUESSES_WAIT_SECONDS = MINUTE_MS / 1000;

/** Counts the guesses at the password of something that has a name, so that a program cannot try many. */
export interface Guesses {
  /** Counts one more guess. Whether it is one too many for this minute. */
  isTooMany(name: string): boolean;
  /** The password was given: whoever knows it need not wait for having been slow. */
  forget(name: string): void;
}

export function guessesOf(clock: Clock): Guesses {
  const guesses = new Map<string, { since: Instant; count: number }>();
  return {
    isTooMany(name) {
      const key = keyOf(name);
      const counted = guesses.get(key);
      if (!counted || elapsedMs(clock, counted.since) >= MINUTE_MS) {
        guesses.delete(key);
        guesses.set(key, { since: clock.instant(), count: 1 });
        const [oldest] = guesses.keys();
        if (guesses.size > COUNTED_MAX && oldest !== undefined) guesses.delete(oldest);
        return false;
      }
      counted.count++;
      return counted.count > GUESSES_PER_MINUTE;
    },
    forget(name) {
      guesses.delete(keyOf(name));
    },
  };
}

/** A guesser chooses the names, and so how long they are: ten thousand of them must not fill the memory. */
function keyOf(name: string): string {
  return createHash('sha256').update(name).digest('base64');
}
