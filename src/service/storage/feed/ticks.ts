import type { Clock } from '../../../util/clock.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';

/**
 * The growing numbers that order the changes of a namespace, each namespace's own. They follow the time (in 1/1024 ms),
 * so that a data directory restored from a backup does not issue a number twice: a `rev` stands for the same bytes
 * permanently, and clients' caches rely on it.
 */
export class Ticks {
  /** Numbers of the running transaction: the last one of each namespace. The others are in the database. */
  readonly #issued = new Map<number, number>();
  readonly #reserved = new Map<number, readonly NumberRange[]>();
  readonly #stored: (ns: number) => number;
  readonly #store: (ns: number, last: number) => void;

  constructor(
    database: SqliteDatabase,
    private readonly clock: Clock,
    reserved: readonly NumberRange[] = [],
  ) {
    const stored = database.prepare<[number], { tick: number }>('SELECT tick FROM namespace WHERE id = ?');
    const store = database.prepare<[number, number]>('UPDATE namespace SET tick = ? WHERE id = ?');
    this.#stored = (ns) => stored.get(ns)?.tick ?? 0;
    this.#store = (ns, last) => store.run(last, ns);
    this.keep(reserved);
  }

  /** Keeps numbers that others have reserved. */
  keep(ranges: readonly NumberRange[]): void {
    for (const range of ranges)
      if (!this.#reserved.get(range.ns)?.some(({ first }) => first === range.first)) this.#keep(range);
  }

  /** Returns the last issued number of a namespace. */
  last(ns: number): number {
    return this.#issued.get(ns) ?? this.#stored(ns);
  }

  /** Returns a number above all earlier ones of the namespace, even after the clock was set back. */
  next(ns: number): number {
    let next = Math.max(this.last(ns) + 1, tickAt(this.clock.now()));
    for (const { first, last } of this.#reserved.get(ns) ?? [])
      if (next >= first && next <= last) next = last + 1;
    this.#issued.set(ns, next);
    return next;
  }

  /** Reserves numbers above all that the namespace issues in the next `aheadMs`. `next` skips them. */
  reserve(ns: number, count: number, aheadMs: number): NumberRange {
    const issued = this.last(ns);
    const left = (this.#reserved.get(ns) ?? []).filter(({ last }) => last > issued);
    this.#reserved.set(ns, left);
    const past = left.map(({ last }) => last + 1);
    const first = Math.max(issued + SPARE_NUMBERS, tickAt(this.clock.now() + aheadMs), ...past);
    const range = { ns, first, last: first + count - 1 };
    this.#keep(range);
    return range;
  }

  #keep(range: NumberRange): void {
    this.#reserved.set(range.ns, [...(this.#reserved.get(range.ns) ?? []), range]);
  }

  /** Whether all issued numbers of its namespace, and those of the next second, are below a range. */
  isBelow({ ns, first }: NumberRange): boolean {
    return Math.max(this.last(ns) + SPARE_NUMBERS / 2, tickAt(this.clock.now() + 1000)) < first;
  }

  /** Marks the numbers of a range as issued. */
  useUp({ ns, last }: NumberRange): void {
    this.#issued.set(ns, Math.max(this.last(ns), last));
  }

  /** Writes the numbers of the running transaction, as the last part of it. */
  store(): void {
    for (const [ns, last] of this.#issued) this.#store(ns, last);
    this.#issued.clear();
  }

  /** Takes back the numbers of a transaction that has failed. */
  takeBack(): void {
    this.#issued.clear();
  }
}

/** Consecutive numbers of a namespace, including the last one. */
export interface NumberRange {
  readonly ns: number;
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
