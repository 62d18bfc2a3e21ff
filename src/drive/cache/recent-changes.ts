import type { FeedChange } from '../../api/remote.ts';
import type { StreamPosition } from '../../state/change-stream.ts';
import { largest } from '../../util/extremes.ts';
import { isKeyWithin, keyOf, type Path } from '../../util/path.ts';
import { type Known, stateOf } from './recency.ts';

/** One path that a gateway has changed. */
export interface ChangedPlace {
  readonly path: Path;
  /** Whether everything below has changed too. */
  readonly isTree: boolean;
  /** What is there now; absent if only the service knows. */
  readonly outcome?: Known | undefined;
}

/** A change that a gateway has made at the service. */
export interface MadeChange {
  readonly places: readonly ChangedPlace[];
  /** Whether a folder among them was just created and is empty. */
  readonly isNew: boolean;
  /** Time of the change by the clock of that gateway, in ms since 1970. */
  readonly madeMs: number;
}

/** Number of recent changes that are compared with new ones. The feed reports each change of a gateway too. */
const RECENT_MAX = 2_048;

interface RecentPlace {
  readonly position: StreamPosition;
  readonly key: string;
  /** Whether everything below has changed too. */
  readonly isTree: boolean;
  /** What is there since, as `stateOf`; `undefined` if only the service knows. */
  readonly state: string | undefined;
  /** Whether it is a report of the feed: a gateway may tell of the same change later. */
  readonly isReport: boolean;
}

/** The latest changes, to find those that were made at the same time at the same place. */
export class RecentChanges {
  #places: RecentPlace[] = [];
  /** Changes up to the event with this number are not known any more. */
  #forgotten = 0;

  add(position: StreamPosition, { places }: MadeChange): void {
    for (const { path, isTree, outcome } of places) {
      const state = outcome && stateOf(outcome);
      this.#places.push({ position, key: keyOf(path), isTree, state, isReport: false });
    }
    this.#forgetOldest();
  }

  addReports(position: StreamPosition, changes: readonly FeedChange[]): void {
    for (const change of changes) this.#places.push(reportedPlace(position, change));
    this.#forgetOldest();
  }

  #forgetOldest(): void {
    if (this.#places.length <= 2 * RECENT_MAX) return;
    const dropped = this.#places.splice(0, this.#places.length - RECENT_MAX);
    this.#forgotten = largest([this.#forgotten, ...dropped.map(({ position }) => position.number)]);
  }

  /** Whether a change that began after the event `since` was read may have met another one. */
  meets({ places, isNew }: MadeChange, since: number): boolean {
    if (since < this.#forgotten) return true;
    return places.some((place) => {
      const key = keyOf(place.path);
      return this.#places.some(
        (recent) =>
          recent.position.number > since &&
          (recent.isReport
            ? this.#contradicts(recent, key, place, isNew)
            : recent.key === key ||
              (place.isTree && isKeyWithin(recent.key, key)) ||
              (recent.isTree && isKeyWithin(key, recent.key))),
      );
    });
  }

  /** Whether `report` tells of a change beside the one that has left `outcome` at `key`. */
  #contradicts(report: RecentPlace, key: string, { isTree, outcome }: ChangedPlace, isNew: boolean): boolean {
    if (outcome === undefined) return false;
    if (report.key === key || (report.isTree && isKeyWithin(key, report.key)))
      return report.state !== stateOf(outcome) && !this.#isTold(report);
    const isEmptied = isTree && (isNew || outcome === 'absent');
    return isEmptied && report.state !== 'absent' && isKeyWithin(report.key, key) && !this.#isTold(report);
  }

  /** Whether a gateway had told of the reported revision before the report, which comes late: a revision is made once. */
  #isTold({ position, key, state }: RecentPlace): boolean {
    return (
      state?.startsWith('rev ') === true &&
      this.#places.some(
        (each) =>
          !each.isReport &&
          each.key === key &&
          each.state === state &&
          each.position.number < position.number,
      )
    );
  }

  /** Forgets all changes up to `end`, and those of other lifetimes, whose numbers say nothing any more. */
  forget(end: StreamPosition): void {
    // The gateway's own changes are here before it has read what other gateways had told before them.
    this.#places = this.#places.filter(
      ({ position }) => position.lifetime === end.lifetime && position.number > end.number,
    );
    this.#forgotten = end.number;
  }
}

function reportedPlace(position: StreamPosition, change: FeedChange): RecentPlace {
  const report = { position, isReport: true };
  if (change.kind === 'unknown-below')
    return { ...report, key: keyOf(change.path), isTree: true, state: undefined };
  if (change.kind === 'deleted') return { ...report, key: keyOf(change.path), isTree: true, state: 'absent' };
  const { entry } = change;
  return { ...report, key: keyOf(entry.path), isTree: entry.kind === 'file', state: stateOf(entry) };
}
