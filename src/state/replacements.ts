import type { Path } from '../util/path.ts';

/**
 * A target that had to step aside while something takes its place, noted before it steps and crossed out
 * when all is done: after a kill in between it is known what to put back.
 */
export interface Replacement {
  readonly id: string;
  /** Where the old target belongs. */
  readonly path: Path;
  /** Where it waits meanwhile. */
  readonly waitingAt: Path;
  /** `replace`: it goes when the new one has come. `rename`: it is itself what is being renamed, to `path`. */
  readonly purpose: 'replace' | 'rename';
  /** For `replace`: the id of what takes the place, once it is known. */
  readonly replacement?: string;
}

export interface Replacements {
  all(): Promise<readonly Replacement[]>;
  note(relocation: Replacement): Promise<void>;
  crossOut(id: string): Promise<void>;
}
