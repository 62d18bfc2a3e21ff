import { keyOf, type Path } from '../util/path.ts';
import { isKeyWithin } from './cache/key-tree.ts';

/** Work under way at some places. */
interface Holder {
  readonly keys: readonly string[];
  readonly done: Promise<unknown>;
}

/**
 * Shared and exclusive locks on paths, inside this process. Two locks meet when one of their paths is the other's or
 * lies above it. Each waits only for locks that were asked for before it, so the order is that of the calls and
 * nobody starves. A holder must not ask for a second lock that meets its own: it would wait for itself.
 */
export class PathLocks {
  readonly #shared = new Set<Holder>();
  readonly #exclusive = new Set<Holder>();

  /** Does `work` beside other shared locks, and never beside an exclusive one that meets it. */
  shared<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return enter(this.#shared, paths, [this.#exclusive], work);
  }

  /** Does `work` while no other lock that meets it is held. */
  exclusive<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return enter(this.#exclusive, paths, [this.#shared, this.#exclusive], work);
  }

  /** Resolves when the exclusive locks that meet `path` now are released; `undefined` when there are none. */
  untilShareable(path: Path): Promise<unknown> | undefined {
    const earlier = meeting([keyOf(path)], [this.#exclusive]);
    return earlier.length > 0 ? Promise.allSettled(earlier) : undefined;
  }
}

function enter<T>(
  own: Set<Holder>,
  paths: readonly Path[],
  others: readonly Iterable<Holder>[],
  work: () => Promise<T>,
): Promise<T> {
  const keys = paths.map(keyOf);
  const earlier = meeting(keys, others);
  const done = earlier.length > 0 ? Promise.allSettled(earlier).then(work) : work();
  const holder = { keys, done };
  own.add(holder);
  const leave = () => own.delete(holder);
  done.then(leave, leave);
  return done;
}

function meeting(keys: readonly string[], holders: readonly Iterable<Holder>[]): Promise<unknown>[] {
  const found: Promise<unknown>[] = [];
  for (const some of holders) for (const holder of some) if (meet(holder.keys, keys)) found.push(holder.done);
  return found;
}

function meet(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => others.some((other) => isKeyWithin(one, other) || isKeyWithin(other, one)));
}
