import { isApiFailure } from '../../api/errors.ts';
import { foldName, type Path } from '../../util/path.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError, replaced } from '../errors.ts';
import type { Entry, FileEntry, Listing } from '../files.ts';
import { isLocalFile } from '../local-files.ts';
import { isWithinWaiting } from '../names.ts';
import { isPlaceholder, placeholderEntry } from '../placeholders.ts';
import type { TreeParts } from './parts.ts';

/** What is seen: the service's entries, and what is kept beside them. */
export class Reader {
  /** What was last shown of a listing, and with what beside it: the same again must be the same object. */
  readonly #shown = new WeakMap<Listing, { readonly extra: string; readonly listing: Listing }>();

  constructor(private readonly parts: TreeParts) {}

  stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    return this.#stat(path, { believesAbsence: false }, signal);
  }

  async statForWrite(
    path: Path,
    { isPinned }: { readonly isPinned: boolean },
    signal?: AbortSignal,
  ): Promise<Entry | undefined> {
    const { metadata, localFiles } = this.parts;
    if (isPinned && !isWithinWaiting(path) && !localFiles.owns(path)) await metadata.refresh(path);
    return this.#stat(path, { believesAbsence: true }, signal);
  }

  async #stat(
    path: Path,
    how: { readonly believesAbsence: boolean },
    signal: AbortSignal | undefined,
  ): Promise<Entry | undefined> {
    const { metadata, localFiles, placeholders } = this.parts;
    if (isWithinWaiting(path)) return undefined;
    if (localFiles.owns(path)) return localFiles.stat(path);
    const entry = await metadata.statOrLast(path, how, signal);
    if (entry) return entry;
    const placeholder = await placeholders.get(path);
    if (placeholder) return placeholderEntry(placeholder);
    // A placeholder that was committed while we asked is known by now.
    const known = metadata.peek(path);
    return known === 'absent' ? undefined : known;
  }

  async list(path: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): Promise<Listing> {
    const { metadata, localFiles, placeholders } = this.parts;
    if (isWithinWaiting(path)) throw new FileError('not-found', `${path} is not there`);
    if (localFiles.owns(path)) return this.#listLocal(path);
    // Placeholders first: one that is committed meanwhile is then found twice, and not never.
    const empty = await placeholders.in(path);
    const litter = await localFiles.in(path);
    return this.#with(await metadata.listOrLast(path, isCovered, signal), empty, litter);
  }

  async *walk(path: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): AsyncIterable<Listing> {
    const { subtrees } = this.parts.metadata;
    const pending: Path[] = [path];
    let mayFetch = true;
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const listing = await this.#listIfThere(next, path, () => this.list(next, signal, isCovered));
      if (!listing) continue;
      yield listing;
      const folders = listing.children.filter((child) => child.kind === 'folder').map((child) => child.path);
      // One recursive listing for all of them; what is too large for that is listed folder by folder.
      if (mayFetch && folders.filter((folder) => this.#isCold(folder)).length > 1)
        mayFetch = await subtrees.fetch(listing.folder, { ahead: false }, signal);
      for (const folder of folders.reverse()) pending.push(folder);
    }
  }

  async *read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array> {
    if (isPlaceholder(file)) return;
    if (isLocalFile(file)) return yield await this.parts.localFiles.read(file, range);
    try {
      yield* this.parts.reader.read(file, range, signal);
    } catch (error) {
      throw isApiFailure(error, 'not-found') ? await this.#reasonOfMissing(file, error, signal) : error;
    }
  }

  /** The service has not got this revision any more: which does not say that nothing is there. */
  async #reasonOfMissing(file: FileEntry, error: unknown, signal: AbortSignal): Promise<unknown> {
    this.parts.metadata.forget(file.path);
    return (await this.stat(file.path, signal)) ? replaced(file.path) : error;
  }

  #isCold(folder: Path): boolean {
    return !this.parts.localFiles.owns(folder) && this.parts.metadata.isCold(folder);
  }

  /** A folder that went away while its parent was being shown is none; the one that was asked for is. */
  async #listIfThere(path: Path, top: Path, list: () => Promise<Listing>): Promise<Listing | undefined> {
    try {
      return await list();
    } catch (error) {
      const isGone =
        isApiFailure(error, 'not-found', 'not-folder') ||
        (error instanceof FileError && (error.fault === 'not-found' || error.fault === 'not-a-folder'));
      if (path === top || !isGone) throw error;
      return undefined;
    }
  }

  async #listLocal(path: Path): Promise<Listing> {
    const folder = await this.parts.localFiles.stat(path);
    if (!folder) throw new FileError('not-found', `${path} is not there`);
    if (folder.kind === 'file') throw new FileError('not-a-folder', `${path} is not a folder`);
    return { folder, children: await this.parts.localFiles.in(path) };
  }

  #with(base: Listing, empty: readonly FileEntry[], litter: readonly Entry[]): Listing {
    if (empty.length + litter.length === 0) return base;
    const extra = JSON.stringify([empty, litter]);
    const shown = this.#shown.get(base);
    if (shown?.extra === extra) return shown.listing;
    const there = new Set(base.children.map((child) => foldName(child.name)));
    const beside = [...empty, ...litter].filter(({ name }) => !there.has(foldName(name)));
    const listing = { folder: base.folder, children: [...base.children, ...beside] };
    this.#shown.set(base, { extra, listing });
    return listing;
  }
}
