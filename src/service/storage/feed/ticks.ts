import type { Clock } from '../../../util/clock.ts';

/**
 * The growing numbers that order all changes. They follow the time (in 1/1024 ms), so that a data directory restored
 * from a backup does not issue a number twice: a `rev` stands for the same bytes permanently, and clients' caches rely
 * on it.
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

  /** The last issued number. */
  get last(): number {
    return this.#last;
  }

  /** Returns a number above all earlier ones, even after the clock was set back. */
  next(): number {
    let next = Math.max(this.#last + 1, tickAt(this.clock.now()));
    for (const { first, last } of this.#reserved) if (next >= first && next <= last) next = last + 1;
    this.#last = next;
    return next;
  }

  /** Reserves numbers above all that are issued in the next `aheadMs`. `next` skips them. */
  reserve(count: number, aheadMs: number): NumberRange {
    this.#reserved = this.#reserved.filter(({ last }) => last > this.#last);
    const past = this.#reserved.map(({ last }) => last + 1);
    const first = Math.max(this.#last + SPARE_NUMBERS, tickAt(this.clock.now() + aheadMs), ...past);
    const range = { first, last: first + count - 1 };
    this.#reserved = [...this.#reserved, range];
    return range;
  }

  /** Whether all issued numbers, and those of the next second, are below a range. */
  isBelow({ first }: NumberRange): boolean {
    return Math.max(this.#last + SPARE_NUMBERS / 2, tickAt(this.clock.now() + 1000)) < first;
  }

  /** Marks the numbers of a range as issued. */
  useUp({ last }: NumberRange): void {
    this.#last = Math.max(this.#last, last);
  }

  /** Takes back the numbers after `last`, whose transaction has failed. */
  takeBack(last: number): void {
    this.#last = last;
  }
}

/** Consecutive numbers, including the last one. */
export interface NumberRange {
  readonly first: number;
  readonly last: number;
}

/** Numbers left below a reserved range when the numbers are ahead of the clock: those of a second. */
const SPARE_NUMBERS = 1024 * 1000;

/** Returns the first number that can be issued at `ms`. */
export function tickAt(ms: number): number {
  return ms * 1024;
}

/** Hex digits of a number in a rev: enough for 53 bits, so that revs sort as strings. */
const NUMBER_DIGITS = 14;

/** Returns the rev of a number: 22 lower-case hex digits, the last 8 of which identify the data directory. */
export function revOf(number: number, directoryTag: string): string {
  return number.toString(16).padStart(NUMBER_DIGITS, '0') + directoryTag;
}

/** Returns the number in `rev`; `undefined` for a rev of another data directory. */
export function numberOf(rev: string, directoryTag: string): number | undefined {
  if (!/^[0-9a-f]{22}$/.test(rev) || rev.slice(NUMBER_DIGITS) !== directoryTag) return undefined;
  return Number.parseInt(rev.slice(0, NUMBER_DIGITS), 16);
}
