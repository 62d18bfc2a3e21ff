import type { Path } from '../util/path.ts';

/**
 * The replacement of an entry by a move or copy: the old entry is renamed first. Noted before that and crossed out at the
 * end, so that recovery knows after a kill what to put back.
 */
export interface Replacement {
  readonly id: string;
  /** Path of the old entry. */
  readonly path: Path;
  /** Path of the old entry while it is out of the way. */
  readonly waitingAt: Path;
  /** `replace`: the old entry is deleted at the end. `rename`: the entry itself is being renamed to `path`. */
  readonly purpose: 'replace' | 'rename';
  /** For `replace`: the id of the new entry, once it is known. */
  readonly replacement?: string;
}

export interface Replacements {
  all(): Promise<readonly Replacement[]>;
  note(relocation: Replacement): Promise<void>;
  crossOut(id: string): Promise<void>;
}
