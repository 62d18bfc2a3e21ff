import { isApiFailure } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import type { Placeholder } from '../../state/placeholders.ts';
import type { DriveState } from '../../state/state.ts';
import type { Log } from '../../util/log.ts';
import { type Path, ROOT } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import { FileError } from '../errors.ts';
import type { Entry, RemoveOptions } from '../files.ts';
import type { LocalFiles } from '../local-files.ts';
import type { ModifiedTimes } from '../modified-times.ts';
import { companionOf, isWithinWaiting } from '../names.ts';
import type { PathLocks } from '../path-locks.ts';
import { type Placeholders, placeholderEntry } from '../placeholders.ts';
import type { QuotaCache } from '../quota-cache.ts';
import type { StateCollector } from '../state-collector.ts';

export type DeletePolicy = 'auto' | 'permanent' | 'trash';

interface RemoverDeps {
  readonly remote: Pick<Remote, 'remove'>;
  readonly state: Pick<DriveState, 'properties'>;
  readonly metadata: MetadataCache;
  readonly localFiles: LocalFiles;
  readonly placeholders: Placeholders;
  readonly times: ModifiedTimes;
  readonly locks: PathLocks;
  readonly collector: StateCollector;
  readonly quota: QuotaCache;
  readonly log: Log;
  readonly policy: DeletePolicy;
}

/** Deletes files and folders, and the state that davgate keeps for them. */
export class Remover {
  #isPermanent: boolean;

  constructor(private readonly deps: RemoverDeps) {
    this.#isPermanent = deps.policy !== 'trash';
  }

  /** Whether deletions are permanent unless they must be recoverable, by the last answer of the service. */
  get isPermanent(): boolean {
    return this.#isPermanent;
  }

  async remove(path: Path, options: RemoveOptions): Promise<void> {
    const { localFiles, placeholders, metadata } = this.deps;
    if (path === ROOT) throw new FileError('forbidden', 'the root of the drive cannot be removed');
    if (localFiles.owns(path)) return this.#removeLocal(path, options);
    // A placeholder that is committed after its folder was deleted would bring the folder back.
    const isRemoved = await placeholders.withCommitsPaused(
      [path],
      async () => {
        const entry = isWithinWaiting(path) ? undefined : await metadata.stat(path);
        if (entry) return this.#removeEntry(entry, options);
        const placeholder = await placeholders.get(path);
        if (!placeholder) throw new FileError('not-found', `${path} is not there`);
        return this.#removePlaceholder(placeholder, options);
      },
      { isShort: true },
    );
    // It was replaced or moved meanwhile.
    if (!isRemoved) await this.remove(path, options);
  }

  #removePlaceholder({ path, id }: Placeholder, options: RemoveOptions): Promise<boolean> {
    const { placeholders, locks } = this.deps;
    return locks.exclusive([path], async () => {
      const placeholder = await placeholders.get(path);
      if (placeholder?.id !== id) return false;
      requireMeant(placeholderEntry(placeholder), options);
      await placeholders.forget(placeholder);
      await this.forgetKept(path, [id]);
      return true;
    });
  }

  /** Forgets the state of what was at `path` and below. All changes at once, so that they cost one commit. */
  async forgetKept(path: Path, ids: readonly string[]): Promise<void> {
    const { localFiles, placeholders, state, times } = this.deps;
    const [within, ...localIds] = await Promise.all([
      placeholders.within(path),
      localFiles.forget(path),
      localFiles.forget(companionOf(path)),
    ]);
    await Promise.all([
      state.properties.forget([...ids, ...within.map(({ id }) => id), ...localIds.flat()]),
      times.forget(ids),
      ...within.map((placeholder) => placeholders.forget(placeholder)),
    ]);
  }

  /** Returns the id of `entry` and the cached ids of everything below it. */
  idsWithin(entry: Entry): string[] {
    if (entry.kind === 'file') return [entry.id];
    const folders = this.deps.metadata.foldersWithin(entry.path);
    return [entry.id, ...folders.flatMap((folder) => [...folder.entries()].map(({ id }) => id))];
  }

  /** Whether the listing of `entry`, and of each folder below it, is in memory. */
  #isAllKnown(entry: Entry): boolean {
    const { metadata } = this.deps;
    if (entry.kind === 'file') return true;
    if (metadata.isCold(entry.path)) return false;
    const folders = metadata.foldersWithin(entry.path).flatMap((folder) => [...folder.entries()]);
    return folders.every((each) => each.kind === 'file' || !metadata.isCold(each.path));
  }

  #removeLocal(path: Path, options: RemoveOptions): Promise<void> {
    const { localFiles, locks, state } = this.deps;
    return locks.exclusive([path], async () => {
      const entry = await localFiles.stat(path);
      if (!entry) throw new FileError('not-found', `${path} is not there`);
      requireMeant(entry, options);
      await state.properties.forget(await localFiles.forget(path));
    });
  }

  async #removeEntry(entry: Entry, options: RemoveOptions): Promise<true> {
    const { quota, locks, collector } = this.deps;
    await locks.exclusive([entry.path], async () => {
      const ids = this.idsWithin(entry);
      const isAllKnown = this.#isAllKnown(entry);
      await this.#removeAndTell(entry, options);
      const isAllForgotten = await this.#forgetDeleted(entry.path, ids);
      // The deletion itself is done, and the next sweep finds what is missed here.
      if (!isAllKnown || !isAllForgotten) await collector.doubt().catch(() => {});
    });
    if (entry.kind === 'file') quota.add(-entry.sizeBytes);
    return true;
  }

  /** Does `forgetKept` after a deletion at the service. A failure goes to the log: an error would deny the deletion. */
  async #forgetDeleted(path: Path, ids: readonly string[]): Promise<boolean> {
    const { placeholders, log } = this.deps;
    try {
      await this.forgetKept(path, ids);
      return true;
    } catch (error) {
      // A remaining placeholder would be committed later and bring its folder back.
      if ((await placeholders.within(path)).length > 0) throw error;
      log.warn('properties and times of a deleted file are not removed yet; the next sweep removes them', {
        path,
        reason: String(error),
      });
      return false;
    }
  }

  async #removeAndTell(entry: Entry, options: RemoveOptions): Promise<void> {
    const { metadata } = this.deps;
    const change = metadata.begin([entry.path], { tree: entry.kind === 'folder' });
    try {
      await this.#removeAtService(entry, options);
    } catch (error) {
      await change.failed(error);
      throw error;
    }
    await change.end([[entry.path, 'absent']]);
  }

  async #removeAtService(
    { path, id }: Pick<Entry, 'path' | 'id'>,
    { recoverable, rev }: RemoveOptions,
  ): Promise<void> {
    const { remote, log, policy } = this.deps;
    const permanent = this.#isPermanent && !recoverable;
    const meant = { id, ...(rev !== undefined && { rev }) };
    try {
      await remote.remove(path, { ...meant, permanent });
    } catch (error) {
      if (rev !== undefined && isApiFailure(error, 'conflict-file')) throw changed(path, error);
      if (!permanent || policy !== 'auto' || !isApiFailure(error, 'not-allowed')) throw error;
      log.info('the storage service does not allow permanent deletion here: deleted files go to its trash');
      this.#isPermanent = false;
      await this.#removeAtService({ path, id }, { recoverable: true, ...(rev !== undefined && { rev }) });
    }
  }
}

/** Throws `changed` unless `entry`, which only this machine has, is the revision that the caller named. */
function requireMeant(entry: Entry, { rev }: RemoveOptions): void {
  if (rev !== undefined && (entry.kind !== 'file' || entry.rev !== rev)) throw changed(entry.path);
}

function changed(path: Path, cause?: unknown): FileError {
  return new FileError('changed', `${path} is not what was expected`, { cause });
}
