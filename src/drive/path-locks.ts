import { isKeyWithin, keyOf, type Path } from '../util/path.ts';

/** Running work at some paths. */
interface Holder {
  readonly keys: readonly string[];
  readonly done: Promise<unknown>;
}

/**
 * Shared and exclusive locks on paths within this process. Two locks overlap when a path of one equals a path of the
 * other or lies above it. Each lock waits only for earlier ones, so that locks are granted in the order of the calls.
 * The holder of a lock must not request another one that overlaps it: it would wait for itself.
 */
export class PathLocks {
  readonly #shared = new Set<Holder>();
  readonly #exclusive = new Set<Holder>();

  /** Runs `work` while no overlapping exclusive lock is held. */
  shared<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return enter(this.#shared, paths, [this.#exclusive], work);
  }

  /** Runs `work` while no other overlapping lock is held. */
  exclusive<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return enter(this.#exclusive, paths, [this.#shared, this.#exclusive], work);
  }

  /** Resolves when the exclusive locks on `path` are released; returns `undefined` when there are none. */
  untilShareable(path: Path): Promise<unknown> | undefined {
    const earlier = overlapping([keyOf(path)], [this.#exclusive]);
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
  const earlier = overlapping(keys, others);
  const done = earlier.length > 0 ? Promise.allSettled(earlier).then(work) : work();
  const holder = { keys, done };
  own.add(holder);
  const leave = () => own.delete(holder);
  done.then(leave, leave);
  return done;
}

function overlapping(keys: readonly string[], holders: readonly Iterable<Holder>[]): Promise<unknown>[] {
  const found: Promise<unknown>[] = [];
  for (const some of holders)
    for (const holder of some) if (overlap(holder.keys, keys)) found.push(holder.done);
  return found;
}

function overlap(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => others.some((other) => isKeyWithin(one, other) || isKeyWithin(other, one)));
}
