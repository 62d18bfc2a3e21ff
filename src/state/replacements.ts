import type { Path } from '../util/path.ts';

/**
 * The replacement of an entry by a move or copy, which first renames the old entry. Recorded before that and removed at
 * the end, so that recovery after a kill can restore the old entry.
 */
export interface Replacement {
  readonly id: string;
  /** Path of the old entry. */
  readonly path: Path;
  /** Temporary path of the old entry. */
  readonly waitingAt: Path;
  /** `replace`: the old entry is deleted at the end. `rename`: the entry itself is being renamed to `path`. */
  readonly purpose: 'replace' | 'rename';
  /** For `replace`: the id of the new entry, if known. */
  readonly replacement?: string;
}

export interface Replacements {
  all(): Promise<readonly Replacement[]>;
  /** Stores a replacement, or its new version. */
  note(replacement: Replacement): Promise<void>;
  /** Removes a finished replacement. */
  remove(id: string): Promise<void>;
}
