import type { Remote } from '../../api/remote.ts';
import type { DriveState } from '../../state/state.ts';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { type Path, parentOf } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import type { ContentReader } from '../content/content-reader.ts';
import { FileError } from '../errors.ts';
import type { FolderEntry } from '../files.ts';
import type { LocalFiles } from '../local-files.ts';
import type { PathLocks } from '../path-locks.ts';
import type { Placeholders } from '../placeholders.ts';
import type { QuotaCache } from '../quota.ts';
import type { ModifiedTimes } from '../set-times.ts';
import type { StateCollector } from '../state-collector.ts';

/** What the operations on a tree work with. */
export interface TreeParts {
  readonly remote: Remote;
  /** Whatever puts something at a path holds it shared meanwhile; whatever takes something away, exclusive. */
  readonly locks: PathLocks;
  readonly state: DriveState;
  readonly metadata: MetadataCache;
  readonly localFiles: LocalFiles;
  readonly placeholders: Placeholders;
  readonly times: ModifiedTimes;
  readonly collector: StateCollector;
  readonly reader: ContentReader;
  readonly space: QuotaCache;
  readonly clock: Clock;
  readonly log: Log;
}

/** The folder that holds `path`. Throws `parent-missing`: the service would make it, and nobody asked for that. */
export async function parentFolder(
  { metadata, localFiles }: TreeParts,
  path: Path,
  signal?: AbortSignal,
): Promise<FolderEntry> {
  const folder = parentOf(path);
  const parent = localFiles.owns(folder)
    ? await localFiles.stat(folder)
    : await metadata.stat(folder, signal);
  if (parent?.kind === 'folder') return parent;
  const why = parent ? 'is a file' : 'is not there';
  throw new FileError('parent-missing', `${folder}, which should placeholder ${path}, ${why}`);
}

/**
 * Puts something at `path`: nothing is moved or removed there while `work` runs. The folder is looked for again here,
 * because it may have gone while a body came. Throws `parent-missing`.
 */
export function putInTurn<T>(parts: TreeParts, path: Path, work: () => Promise<T>): Promise<T> {
  return parts.locks.shared([path], async () => {
    await parentFolder(parts, path);
    return work();
  });
}
