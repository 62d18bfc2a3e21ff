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
 * anything while the change feed is down.
 */
const KEPT_MS = 60_000;

interface Answer {
  readonly since: Instant;
  /** `undefined` while the service is asked. */
  trash: Trash | undefined;
}

/** Remembers what was deleted from folders until something in them changes. */
export class TrashCache {
  /** By the key of the folder. A change removes an answer also while it is on its way, for those who ask later. */
  readonly #answers = createLru<Answer>(FOLDERS_MAX);
  readonly #flights = new SingleFlight<Answer, Trash>();

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
    const answer = this.#answerFor(keyOf(folder));
    if (answer.trash) return answer.trash;
    const load = async (stop: AbortSignal): Promise<Trash> => {
      answer.trash = await this.drive.history.trash(folder, stop);
      return answer.trash;
    };
    return this.#flights.run(answer, load, signal);
  }

  #answerFor(key: string): Answer {
    const known = this.#answers.get(key);
    if (known && elapsedMs(this.clock, known.since) < KEPT_MS) return known;
    const answer = { since: this.clock.instant(), trash: undefined };
    this.#answers.set(key, answer);
    return answer;
  }

  /** Forgets the folder in which something has changed, and the folders at and below that. */
  #forget(changed: string): void {
    this.#answers.delete(parentKeyOf(changed));
    for (const key of this.#answers.keys()) if (isKeyWithin(key, changed)) this.#answers.delete(key);
  }
}
