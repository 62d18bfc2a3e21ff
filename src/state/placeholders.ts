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
}

/** The placeholders of one drive, by path. Durable: they survive a kill and are committed after it. */
export interface PlaceholderStore {
  get(path: Path): Promise<Placeholder | undefined>;
  /** Returns the placeholders directly in `folder`. */
  in(folder: Path): Promise<readonly Placeholder[]>;
  /** Returns the placeholders at `path` and below. */
  within(path: Path): Promise<readonly Placeholder[]>;
  put(placeholder: Placeholder): Promise<void>;
  forget(path: Path): Promise<void>;
}
