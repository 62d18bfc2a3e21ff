import type { Locks } from '../state/locks.ts';
import { type Path, ROOT } from '../util/path.ts';

/** Something that clients of a drive see differently from now on. */
export type DriveChange =
  /** An entry appeared, changed or disappeared. `isTree`: also what is below it. */
  | { readonly kind: 'entry'; readonly path: Path; readonly isTree: boolean }
  /** A lock was granted or has ended. */
  | { readonly kind: 'locks' }
  /** A pending write was accepted, was sent, or could not be sent. */
  | { readonly kind: 'writes' };

/** Reports the changes of a drive, made by davgate's own clients and elsewhere. */
export interface Changes {
  /** Calls `listener` at each change until the returned function is called. */
  follow(listener: (change: DriveChange) => void): () => void;
}

/**
 * Passes the changes of a drive on. A change may be announced twice, and also when it is not certain; it is visible when
 * it is announced, or is announced again.
 */
export class Announcer implements Changes {
  /** Whether anybody follows. Callers check it before they work out what has changed. */
  isFollowed = false;
  readonly #listeners = new Set<(change: DriveChange) => void>();

  follow(listener: (change: DriveChange) => void): () => void {
    const own = (change: DriveChange) => listener(change);
    this.#listeners.add(own);
    this.isFollowed = true;
    return () => {
      this.#listeners.delete(own);
      this.isFollowed = this.#listeners.size > 0;
    };
  }

  /** `isTree`: everything below `path` has changed too. */
  entry(path: Path, { isTree }: { readonly isTree: boolean }): void {
    this.#announce({ kind: 'entry', path, isTree });
  }

  /** Announces that anything may have changed. */
  everything(): void {
    this.entry(ROOT, { isTree: true });
  }

  /** A pending write at `path` has changed. */
  write(path: Path): void {
    this.#announce({ kind: 'writes' });
    this.entry(path, { isTree: false });
  }

  /** Returns `locks`, whose changes are announced. Reading them and the claims of running requests cost nothing more. */
  locks(locks: Locks): Locks {
    const changed = () => this.#announce({ kind: 'locks' });
    return {
      ...locks,
      async create(nowMs, wanted) {
        const granted = await locks.create(nowMs, wanted);
        if ('token' in granted) changed();
        return granted;
      },
      async release(token) {
        const existed = await locks.release(token);
        if (existed) changed();
        return existed;
      },
      async withdraw(lock) {
        await locks.withdraw(lock);
        changed();
      },
    };
  }

  #announce(change: DriveChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
