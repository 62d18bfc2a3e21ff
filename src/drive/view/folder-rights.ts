import { isKeyWithin, keyOf, type Path, parentKeyOf, ROOT } from '../../util/path.ts';

/** What a user may do in a folder and below it. */
export type FolderRight = 'read-write' | 'read-only' | 'hidden';

/** The right in one folder; a rule for a longer path takes precedence. */
export interface FolderRule {
  readonly path: Path;
  readonly right: FolderRight;
}

/**
 * The rights of a user in the folders of a drive, by path. A hidden folder on the way to one that is shown is shown too,
 * read-only and with nothing else in it.
 */
export class FolderRights {
  /** By the key of the path. */
  readonly #rights: ReadonlyMap<string, FolderRight>;

  constructor(rules: readonly FolderRule[]) {
    this.#rights = new Map(rules.map(({ path, right }) => [keyOf(path), right]));
  }

  /** Returns the right at `path`. */
  at(path: Path): FolderRight {
    const key = keyOf(path);
    const right = this.#ofRule(key);
    return right === 'hidden' && this.#leadsOn(key) ? 'read-only' : right;
  }

  isHidden(path: Path): boolean {
    return this.at(path) === 'hidden';
  }

  /**
   * Returns whether nothing may be changed at `path`. A hidden path answers like a free name in the folder that the user
   * sees above it.
   */
  isReadOnly(path: Path): boolean {
    let key = keyOf(path);
    while (key !== ROOT && this.#ofRule(key) === 'hidden' && !this.#leadsOn(key)) key = parentKeyOf(key);
    return this.#ofRule(key) !== 'read-write';
  }

  /** Returns whether `path` may be created, replaced, moved or deleted; its folder changes with it. */
  isOwn(path: Path): boolean {
    const key = keyOf(path);
    return this.#ofRule(key) === 'read-write' && this.#ofRule(parentKeyOf(key)) === 'read-write';
  }

  /** Returns whether a rule limits the user at `path` or below, whether or not something is there. */
  hasLimitWithin(path: Path): boolean {
    return this.#hasWithin(path, (right) => right !== 'read-write');
  }

  /** Returns whether a rule hides something at `path` or below, whether or not something is there. */
  hidesWithin(path: Path): boolean {
    return this.#hasWithin(path, (right) => right === 'hidden');
  }

  #hasWithin(path: Path, isMeant: (right: FolderRight) => boolean): boolean {
    const key = keyOf(path);
    if (isMeant(this.#ofRule(key))) return true;
    return [...this.#rights].some(([below, right]) => isMeant(right) && isKeyWithin(below, key));
  }

  /** The right that the rule with the longest path gives. */
  #ofRule(key: string): FolderRight {
    for (let above = key; ; above = parentKeyOf(above)) {
      const right = this.#rights.get(above);
      if (right !== undefined) return right;
      if (above === ROOT) return 'read-write';
    }
  }

  /** Whether a folder below the hidden one is shown. */
  #leadsOn(key: string): boolean {
    return [...this.#rights].some(([below, right]) => right !== 'hidden' && isKeyWithin(below, key));
  }
}
