import { ApiError } from '../../src/api/errors.ts';
import type { Entry, FileEntry, Revisions } from '../../src/api/remote.ts';
import { isWithin, keyOf, type Path } from '../../src/util/path.ts';

interface Past {
  readonly path: Path;
  /** Newest first; empty for a folder. */
  readonly files: readonly FileEntry[];
  readonly isFolder: boolean;
  /** Present while nothing is at the path. */
  readonly deletedMs?: number;
}

/** What a storage service in memory remembers of each path. */
export class MemoryPast {
  readonly #paths = new Map<string, Past>();

  put(entry: Entry): void {
    const key = keyOf(entry.path);
    const { path } = entry;
    if (entry.kind === 'folder') this.#paths.set(key, { path, files: [], isFolder: true });
    else
      this.#paths.set(key, {
        path,
        files: [entry, ...(this.#paths.get(key)?.files ?? [])],
        isFolder: false,
      });
  }

  deleted(path: Path, deletedMs: number): void {
    const past = this.#paths.get(keyOf(path));
    if (past) this.#paths.set(keyOf(path), { ...past, deletedMs });
  }

  forget(path: Path): void {
    this.#paths.delete(keyOf(path));
  }

  /** Returns the deleted paths below `folder`. */
  deletedWithin(folder: Path): Path[] {
    return [...this.#paths.values()]
      .filter(({ path, deletedMs }) => deletedMs !== undefined && isWithin(path, folder))
      .map(({ path }) => path);
  }

  /** Returns the revisions of a file at all of its places, newest first. */
  ofFile(id: string | undefined): FileEntry[] {
    const all = [...this.#paths.values()].flatMap(({ files }) => files);
    return all.filter((file) => file.id === id).sort((one, other) => other.committedMs - one.committedMs);
  }

  /** Returns the revisions at `path`. Throws `not-found`, `not-file`. */
  revisions(path: Path): Revisions {
    const past = this.#paths.get(keyOf(path));
    if (!past) throw new ApiError('not-found', `${path} was never there`);
    if (past.isFolder) throw new ApiError('not-file', `${path} is or was a folder`);
    const { files, deletedMs } = past;
    const isDeleted = deletedMs !== undefined;
    return { files, hasMore: false, isDeleted, ...(isDeleted && { deletedMs }) };
  }
}
