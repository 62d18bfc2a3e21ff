import type { Clock } from '../../../util/clock.ts';

/**
 * The growing numbers that order all changes. They start at the time (in 1/1024 ms), so that a data
 * directory that was put back from a backup does not give out a number twice: a `rev` stands for the same
 * bytes for ever, and caches outside rely on it.
 */
export class Ticks {
  #last: number;

  constructor(
    last: number,
    private readonly clock: Clock,
  ) {
    this.#last = last;
  }

  /** The last number that was given out. */
  get last(): number {
    return this.#last;
  }

  /** A number above all before it, also when the clock was set back. */
  next(): number {
    this.#last = Math.max(this.#last + 1, tickAt(this.clock.now()));
    return this.#last;
  }

  /** The first of `count` numbers in a row. */
  take(count: number): number {
    const first = this.next();
    this.#last = first + Math.max(0, count - 1);
    return first;
  }
}

/** The first number that can be given out at `ms`. */
export function tickAt(ms: number): number {
  return ms * 1024;
}

/** Hex digits of a number in a rev: enough for 53 bits, so that revs also grow as strings. */
const NUMBER_DIGITS = 14;

/** The rev of a number: 22 lower hex digits, of which the last 8 tell this data directory from others. */
export function revOf(number: number, directoryTag: string): string {
  return number.toString(16).padStart(NUMBER_DIGITS, '0') + directoryTag;
}

/** The number in `rev`; `undefined` if it is none of this data directory. */
export function numberOf(rev: string, directoryTag: string): number | undefined {
  if (!/^[0-9a-f]{22}$/.test(rev) || rev.slice(NUMBER_DIGITS) !== directoryTag) return undefined;
  return Number.parseInt(rev.slice(0, NUMBER_DIGITS), 16);
}
