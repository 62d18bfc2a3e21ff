import type { LRUCache } from 'lru-cache';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import { createLru } from '../../util/lru.ts';
import { isKeyWithin, keyOf, type Path, parentKeyOf } from '../../util/path.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import type { Changes } from '../changes.ts';

export interface PastCacheOptions {
  /** Maximum number of paths whose answers are remembered. */
  readonly pathsMax: number;
  /** How long an answer is used, in ms, if no change ends it earlier. */
  readonly keptMs?: number;
}

interface Answer<T> {
  readonly since: Instant;
  readonly rev: string;
  /** `undefined` while the service is asked. */
  value: T | undefined;
}

/** Remembers what the service has told of the past of files and folders, until something changes there. */
export class PastCache<T> {
  /** By the key of the path. A change removes an answer also while it is on its way, for those who ask later. */
  readonly #answers: LRUCache<string, Answer<T>>;
  readonly #flights = new SingleFlight<Answer<T>, T>();
  readonly #unfollow: () => void;
  #keptMs: number;

  constructor(
    changes: Changes,
    private readonly clock: Clock,
    { pathsMax, keptMs = Number.POSITIVE_INFINITY }: PastCacheOptions,
  ) {
    this.#answers = createLru(pathsMax);
    this.#keptMs = keptMs;
    this.#unfollow = changes.follow((change) => {
      if (change.kind === 'entry') this.#forget(keyOf(change.path), change.isTree);
    });
  }

  /** Follows the drive no longer. From then on nothing is remembered. */
  unfollow(): void {
    this.#unfollow();
    this.#keptMs = 0;
  }

  /** Returns what `ask` answers about `path`. An answer for another revision of a file is not used. */
  of(
    path: Path,
    ask: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
    rev = '',
  ): Promise<T> {
    const answer = this.#answerFor(keyOf(path), rev);
    if (answer.value !== undefined) return Promise.resolve(answer.value);
    const load = async (stop: AbortSignal): Promise<T> => {
      answer.value = await ask(stop);
      return answer.value;
    };
    return this.#flights.run(answer, load, signal);
  }

  #answerFor(key: string, rev: string): Answer<T> {
    const known = this.#answers.get(key);
    if (known && known.rev === rev && elapsedMs(this.clock, known.since) < this.#keptMs) return known;
    const answer = { since: this.clock.instant(), rev, value: undefined };
    this.#answers.set(key, answer);
    return answer;
  }

  /** Forgets the folder in which something has changed, what is there, and with `isTree` everything below. */
  #forget(changed: string, isTree: boolean): void {
    this.#answers.delete(parentKeyOf(changed));
    this.#answers.delete(changed);
    if (!isTree) return;
    for (const key of this.#answers.keys()) if (isKeyWithin(key, changed)) this.#answers.delete(key);
  }
}
