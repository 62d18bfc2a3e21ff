import type { Path } from '../util/path.ts';

/** An empty file that was acknowledged, but not sent to the service yet. */
export interface Placeholder {
  readonly path: Path;
  readonly id: string;
  readonly rev: string;
  readonly modifiedMs: number;
  /** Time at which it is committed unless a body arrives, in ms since 1970. */
  readonly untilMs: number;
  /** The gateway that commits it; `undefined` if there is only one. */
  readonly owner?: string | undefined;
  /** Whether its owner is committing, moving or removing it: no other gateway may change it then. */
  readonly isBusy?: boolean | undefined;
}

/** The placeholders of one drive, by path. Durable: they survive a kill and are committed after it. */
export interface PlaceholderStore {
  get(path: Path): Promise<Placeholder | undefined>;
  /** Returns the placeholders directly in `folder`. */
  in(folder: Path): Promise<readonly Placeholder[]>;
  /** Returns the placeholders at `path` and below. */
  within(path: Path): Promise<readonly Placeholder[]>;
  put(placeholder: Placeholder): Promise<void>;
  /**
   * Stores `next` in place of `last`. Returns `false`, and changes nothing, unless `last` is there, and unchanged. Absent in
   * a store that only one gateway uses.
   */
  readonly exchange?: (last: Placeholder, next: Placeholder) => Promise<boolean>;
  /**
   * Returns the number of the last event in the change stream at the last lookup: a placeholder that was missing then was
   * committed or removed before it. Absent in a store that only one gateway uses.
   */
  readonly lastEvent?: () => number;
  /** Removes this placeholder. One that has replaced it at its path stays. Returns whether it was there. */
  forget(placeholder: Pick<Placeholder, 'path' | 'id'>): Promise<boolean>;
}
