import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import { createLru } from '../../util/lru.ts';
import { isKeyWithin, keyOf, type Path, parentKeyOf } from '../../util/path.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import type { Trash } from '../history.ts';
import type { ViewedDrive } from './mounts.ts';

/** Maximum number of folders whose deleted files are remembered. */
const FOLDERS_MAX = 500;

/**
 * How long an answer is used, in ms. Changes end it earlier, but the service does not tell when it forgets deleted files, nor
 * davgate while its change feed is down.
 */
const KEPT_MS = 60_000;

/** Remembers what was deleted from folders until something in them changes. */
export class TrashCache {
  readonly #known = createLru<{ readonly trash: Trash; readonly since: Instant }>(FOLDERS_MAX);
  readonly #flights = new SingleFlight<string, Trash>();
  /** Counts changes, so that an answer from before one is not kept. */
  #changes = 0;

  constructor(
    private readonly drive: Pick<ViewedDrive, 'history' | 'changes'>,
    private readonly clock: Clock,
  ) {
    drive.changes.follow((change) => {
      if (change.kind === 'entry') this.#forget(keyOf(change.path));
    });
  }

  /** Returns what was deleted from `folder`. Throws `not-found`, `not-a-folder`. */
  async deletedFrom(folder: Path, signal: AbortSignal | undefined): Promise<Trash> {
    const key = keyOf(folder);
    const known = this.#known.get(key);
    if (known && elapsedMs(this.clock, known.since) < KEPT_MS) return known.trash;
    const changes = this.#changes;
    const load = async (stop: AbortSignal): Promise<Trash> => {
      const since = this.clock.instant();
      const trash = await this.drive.history.trash(folder, stop);
      if (changes === this.#changes) this.#known.set(key, { trash, since });
      return trash;
    };
    // A request after a change must not get the answer to one before it.
    return this.#flights.run(`${changes} ${key}`, load, signal);
  }

  /** Forgets the folder in which something has changed, and the folders at and below that. */
  #forget(changed: string): void {
    this.#changes += 1;
    this.#known.delete(parentKeyOf(changed));
    for (const key of this.#known.keys()) if (isKeyWithin(key, changed)) this.#known.delete(key);
  }
}
