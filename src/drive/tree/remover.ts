import { isApiFailure } from '../../api/errors.ts';
import type { Placeholder } from '../../state/placeholders.ts';
import { type Path, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, RemoveOptions } from '../files.ts';
import { companionOf, isWithinWaiting } from '../names.ts';
import { placeholderEntry } from '../placeholders.ts';
import type { TreeParts } from './parts.ts';

export type DeletePolicy = 'auto' | 'permanent' | 'trash';

/** What is deleted, and what we kept for it. */
export class Remover {
  #isPermanent: boolean;

  constructor(
    private readonly parts: TreeParts,
    private readonly policy: DeletePolicy,
  ) {
    this.#isPermanent = policy !== 'trash';
  }

  /** Whether a deletion that need not be recoverable is for good, as far as is known. */
  get isPermanent(): boolean {
    return this.#isPermanent;
  }

  async remove(path: Path, options: RemoveOptions): Promise<void> {
    const { localFiles, placeholders, metadata } = this.parts;
    if (path === ROOT) throw new FileError('forbidden', 'the root of the drive cannot be removed');
    if (localFiles.owns(path)) return this.#removeLocal(path, options);
    const entry = isWithinWaiting(path) ? undefined : await metadata.stat(path);
    if (entry) return this.#removeEntry(entry, options);
    const placeholder = await placeholders.get(path);
    if (!placeholder) throw new FileError('not-found', `${path} is not there`);
    const isRemoved = await placeholders.withCommitsPaused(path, () =>
      this.#removePlaceholder(placeholder, options),
    );
    // It was committed before.
    if (!isRemoved) await this.remove(path, options);
  }

  #removePlaceholder({ path, id }: Placeholder, options: RemoveOptions): Promise<boolean> {
    const { placeholders, locks } = this.parts;
    return locks.exclusive([path], async () => {
      const placeholder = await placeholders.get(path);
      if (placeholder?.id !== id) return false;
      requireMeant(placeholderEntry(placeholder), options);
      await placeholders.forget(path);
      await this.forgetKept(path, [id]);
      return true;
    });
  }

  /** Forgets what we kept for what is no more at `path` and below; all at once, so that it costs one commit. */
  async forgetKept(path: Path, ids: readonly string[]): Promise<void> {
    const { localFiles, placeholders, state, times } = this.parts;
    const [within, ...localIds] = await Promise.all([
      placeholders.within(path),
      localFiles.forget(path),
      localFiles.forget(companionOf(path)),
    ]);
    await Promise.all([
      state.properties.forget([...ids, ...within.map(({ id }) => id), ...localIds.flat()]),
      times.forget(ids),
      ...within.map((placeholder) => placeholders.forget(placeholder.path)),
    ]);
  }

  /** The ids of `entry` and, as far as they are known, of all below it. */
  idsWithin(entry: Entry): string[] {
    if (entry.kind === 'file') return [entry.id];
    const folders = this.parts.metadata.foldersWithin(entry.path);
    return [entry.id, ...folders.flatMap((folder) => [...folder.entries()].map(({ id }) => id))];
  }

  /** Whether the listing of `entry`, and of each folder below it, is in memory. */
  #isAllKnown(entry: Entry): boolean {
    const { metadata } = this.parts;
    if (entry.kind === 'file') return true;
    if (metadata.isCold(entry.path)) return false;
    const folders = metadata.foldersWithin(entry.path).flatMap((folder) => [...folder.entries()]);
    return folders.every((each) => each.kind === 'file' || !metadata.isCold(each.path));
  }

  #removeLocal(path: Path, options: RemoveOptions): Promise<void> {
    const { localFiles, locks, state } = this.parts;
    return locks.exclusive([path], async () => {
      const entry = await localFiles.stat(path);
      if (!entry) throw new FileError('not-found', `${path} is not there`);
      requireMeant(entry, options);
      await state.properties.forget(await localFiles.forget(path));
    });
  }

  async #removeEntry(entry: Entry, options: RemoveOptions): Promise<void> {
    const { placeholders, space, locks, collector } = this.parts;
    // A placeholder that is committed after its folder has gone would bring the folder back.
    await placeholders.withCommitsPaused(entry.path, () =>
      locks.exclusive([entry.path], async () => {
        const ids = this.idsWithin(entry);
        const isAllKnown = this.#isAllKnown(entry);
        await this.#removeAndTell(entry, options);
        const isAllForgotten = await this.#forgetDeleted(entry.path, ids);
        // The deletion is done all the same, and the next sweep finds what is missed here.
        if (!isAllKnown || !isAllForgotten) await collector.doubt().catch(() => {});
      }),
    );
    if (entry.kind === 'file') space.add(-entry.sizeBytes);
  }

  /** As `forgetKept`, once the service has deleted: a client that got an error would think that nothing was. */
  async #forgetDeleted(path: Path, ids: readonly string[]): Promise<boolean> {
    const { placeholders, log } = this.parts;
    try {
      await this.forgetKept(path, ids);
      return true;
    } catch (error) {
      // A placeholder that is not forgotten is committed later, and would bring its folder back.
      if ((await placeholders.within(path)).length > 0) throw error;
      log.warn('what was kept here for a deleted file is not forgotten yet', { path, reason: String(error) });
      return false;
    }
  }

  async #removeAndTell(entry: Entry, options: RemoveOptions): Promise<void> {
    const { metadata } = this.parts;
    const change = metadata.begin([entry.path], { tree: entry.kind === 'folder' });
    try {
      await this.#removeAtService(entry, options);
    } catch (error) {
      change.failed(error);
      throw error;
    }
    change.end([[entry.path, 'absent']]);
  }

  async #removeAtService(
    { path, id }: Pick<Entry, 'path' | 'id'>,
    { recoverable, rev }: RemoveOptions,
  ): Promise<void> {
    const { remote, log } = this.parts;
    const permanent = this.#isPermanent && !recoverable;
    const meant = { id, ...(rev !== undefined && { rev }) };
    try {
      await remote.remove(path, { ...meant, permanent });
    } catch (error) {
      if (rev !== undefined && isApiFailure(error, 'conflict-file')) throw changed(path, error);
      if (!permanent || this.policy !== 'auto' || !isApiFailure(error, 'not-allowed')) throw error;
      log.info('the service does not allow permanent deletion here: deleted files go to its trash');
      this.#isPermanent = false;
      await this.#removeAtService({ path, id }, { recoverable: true, ...(rev !== undefined && { rev }) });
    }
  }
}

/** Of what is kept here, where nobody else changes it. */
function requireMeant(entry: Entry, { rev }: RemoveOptions): void {
  if (rev !== undefined && (entry.kind !== 'file' || entry.rev !== rev)) throw changed(entry.path);
}

function changed(path: Path, cause?: unknown): FileError {
  return new FileError('changed', `${path} is not what was expected`, { cause });
}
