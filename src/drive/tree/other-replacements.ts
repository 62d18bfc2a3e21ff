import type { Replacement } from '../../state/replacements.ts';
import { isWithin, type Path } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import type { PathLocks } from '../path-locks.ts';

interface OtherReplacementsDeps {
  readonly metadata: Pick<MetadataCache, 'shield'>;
  /** Locks of single calls of the service. */
  readonly callLocks: PathLocks;
  /** Resolves when all that other gateways have begun is known here; `undefined` without others. */
  readonly catchUp: (() => Promise<void>) | undefined;
}

/** A replacement that another gateway has begun. */
export interface OtherReplacement {
  readonly id: string;
  readonly path: Path;
}

interface Running extends OtherReplacement {
  /** Whether its gateway has told it. */
  readonly isTold: boolean;
  readonly end: () => void;
}

/** Replacements at or below a path that run during some work. */
interface Watch {
  readonly path: Path;
  readonly met: OtherReplacement[];
}

/**
 * The replacements that other gateways have begun. While the old entry is away and the new one is not there yet, this
 * gateway shows the old one, and its calls for the path wait.
 */
export class OtherReplacements {
  readonly #running = new Map<string, Running>();
  readonly #watches = new Set<Watch>();

  constructor(private readonly deps: OtherReplacementsDeps) {}

  get ids(): readonly string[] {
    return [...this.#running.keys()];
  }

  /**
   * Begins one that its gateway has told. All gateways let those of a path wait for each other in the order in which they are
   * told, or two could wait for each other for ever.
   */
  begin(id: string, path: Path): void {
    const known = this.#running.get(id);
    if (known?.isTold) return;
    this.#start({ id, path, isTold: true });
    known?.end();
  }

  /** Begins one that is noted, unless it has begun. Its gateway may be about to tell it. */
  expect(id: string, path: Path): void {
    if (!this.#running.has(id)) this.#start({ id, path, isTold: false });
  }

  #start(one: Omit<Running, 'end'>): void {
    const { id, path } = one;
    const { metadata, callLocks } = this.deps;
    const unshield = metadata.shield(path);
    const { promise, resolve } = withResolver();
    // Never rejects.
    void callLocks.exclusive([path], () => promise);
    const end = () => {
      resolve();
      unshield();
    };
    this.#running.set(id, { ...one, end });
    for (const watch of this.#watches) if (isWithin(path, watch.path)) watch.met.push({ id, path });
  }

  end(id: string): void {
    this.#running.get(id)?.end();
    this.#running.delete(id);
  }

  /** Does `work`, a call of the service, and returns also the replacements at or below `path` that it may have met. */
  async during<T>(
    path: Path,
    work: () => Promise<T>,
  ): Promise<{ readonly done: T; readonly met: readonly OtherReplacement[] }> {
    const watch: Watch = {
      path,
      met: [...this.#running.values()].filter((one) => isWithin(one.path, path)),
    };
    this.#watches.add(watch);
    try {
      const done = await work();
      // Each is told before its first step.
      await this.deps.catchUp?.();
      return { done, met: watch.met };
    } finally {
      this.#watches.delete(watch);
    }
  }

  /** Ends those of `ids` that are none of `noted` any more: this gateway has missed their end. */
  endMissed(ids: readonly string[], noted: readonly Replacement[]): void {
    const isNoted = new Set(noted.map(({ id }) => id));
    for (const id of ids) if (!isNoted.has(id)) this.end(id);
  }
}

function withResolver(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
