import { type Path, parentOf } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import { FileError } from '../errors.ts';
import type { FolderEntry } from '../files.ts';
import type { LocalFiles } from '../local-files.ts';
import type { PathLocks } from '../path-locks.ts';

/**
 * The parent folders of new files and folders. The service would create a missing folder by itself, and restore one
 * that was deleted a moment ago; WebDAV answers 409 (RFC 4918 §9.7.1).
 */
export class ParentFolders {
  constructor(
    private readonly metadata: MetadataCache,
    private readonly localFiles: LocalFiles,
    private readonly locks: PathLocks,
  ) {}

  /** Returns the folder of `path`. Throws `parent-missing`. */
  async of(path: Path, signal?: AbortSignal): Promise<FolderEntry> {
    const { metadata, localFiles } = this;
    const folder = parentOf(path);
    const parent = localFiles.owns(folder)
      ? await localFiles.stat(folder)
      : await metadata.stat(folder, signal);
    if (parent?.kind === 'folder') return parent;
    const why = parent ? 'is a file' : 'does not exist';
    throw new FileError('parent-missing', `cannot create ${path}: ${folder} ${why}`);
  }

  /**
   * Runs `work`, which creates or replaces the entry at `path`, while nothing is moved or removed there. Looks up the
   * folder again first, because it may have been removed while a body arrived. Throws `parent-missing`.
   */
  whilePresent<T>(path: Path, work: () => Promise<T>): Promise<T> {
    return this.locks.shared([path], async () => {
      await this.of(path);
      return work();
    });
  }
}
