import type { Clock } from '../../../util/clock.ts';

/**
 * The growing numbers that order all changes. They start at the time (in 1/1024 ms), so that a data
 * directory that was put back from a backup does not give out a number twice: a `rev` stands for the same
 * bytes for ever, and caches outside rely on it.
 */
export class Ticks {
  #last: number;
  #reserved: readonly NumberRange[];

  constructor(
    last: number,
    private readonly clock: Clock,
    reserved: readonly NumberRange[] = [],
  ) {
    this.#last = last;
    this.#reserved = reserved;
  }

  /** The last number that was given out. */
  get last(): number {
    return this.#last;
  }

  /** A number above all before it, also when the clock was set back. */
  next(): number {
    let next = Math.max(this.#last + 1, tickAt(this.clock.now()));
    for (const { first, last } of this.#reserved) if (next >= first && next <= last) next = last + 1;
    this.#last = next;
    return next;
  }

  /** Reserves numbers above all that are given out in the next `aheadMs`. `next` passes over them. */
  reserve(count: number, aheadMs: number): NumberRange {
    this.#reserved = this.#reserved.filter(({ last }) => last > this.#last);
    const past = this.#reserved.map(({ last }) => last + 1);
    const first = Math.max(this.#last + SPARE_NUMBERS, tickAt(this.clock.now() + aheadMs), ...past);
    const range = { first, last: first + count - 1 };
    this.#reserved = [...this.#reserved, range];
    return range;
  }

  /** Whether all numbers given out, and those of the next second, are below a range. */
  isBelow({ first }: NumberRange): boolean {
    return Math.max(this.#last + SPARE_NUMBERS / 2, tickAt(this.clock.now() + 1000)) < first;
  }

  /** Counts the numbers of a range as given out. */
  useUp({ last }: NumberRange): void {
    this.#last = Math.max(this.#last, last);
  }

  /** Takes back the numbers after `last`: the transaction that took them has failed. */
  takeBack(last: number): void {
    this.#last = last;
  }
}

/** Numbers in a row, the last one included. */
export interface NumberRange {
  readonly first: number;
  readonly last: number;
}

/** Numbers left below a reserved range when the numbers are ahead of the clock already: those of a second. */
const SPARE_NUMBERS = 1024 * 1000;

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
