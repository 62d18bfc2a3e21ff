import { isApiFailure } from '../../api/errors.ts';
import { LocalFileTooLarge } from '../../state/local-files.ts';
import { foldName, type Path, parentOf, ROOT } from '../../util/path.ts';
import type { ByteRange } from '../../util/ranges.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import type { ContentReader } from '../content/content-reader.ts';
import { FileError, fileErrorOf, replaced, requireDownloadable } from '../errors.ts';
import type { Entry, FileEntry, Files, FolderEntry, Listing } from '../files.ts';
import type { History } from '../history.ts';
import { type LocalFiles, localEntry } from '../local-files.ts';
import { isWithinWaiting, MAY_BE_SPECIAL } from '../names.ts';
import { type Placeholders, placeholderEntry } from '../placeholders.ts';
import { changeLink, type RemoteLinks, replaceLink, revokeLink, revokeLinks } from '../shared-links.ts';

interface TreeDeps {
  readonly reader: Reader;
  readonly writer: Pick<Files, 'write' | 'keepPlaceholder' | 'createFolder' | 'setModified'>;
  readonly remover: Pick<Files, 'remove'>;
  readonly mover: Pick<Files, 'copy' | 'move'>;
  readonly history: History;
  /** Replacements that a kill or a lost answer left half done. */
  readonly recovery: Unfinished & { readonly mayMiss: boolean };
  /** Moves and copies whose kept state has not followed yet. */
  readonly intentLog: Unfinished;
  readonly localFiles: LocalFiles;
  readonly placeholders: Placeholders;
  readonly quota: { free: Files['freeSpace'] };
  readonly remote: RemoteLinks;
}

interface Unfinished {
  readonly unfinished: { readonly size: number };
  /** Finishes what concerns `path`: its entry, its listing too, or everything below it too. */
  settle(path: Path, what: 'entry' | 'folder' | 'tree'): Promise<void>;
}

export interface Tree extends Files {
  readonly history: History;
  /** Resolves when no change is running. */
  idle(): Promise<void>;
}

/** Joins the operations to `Files`. Recovers what concerns a path first, and turns failures of the service into `FileError`s. */
export function createTree(deps: TreeDeps): Tree {
  const { reader, writer, remover, mover, recovery, intentLog } = deps;
  const { history, localFiles, placeholders, quota, remote } = deps;
  /** Finishes what a kill or a lost answer left at `path`, before it is read or changed. */
  const recover = async (path: Path, what: 'entry' | 'folder' | 'tree'): Promise<void> => {
    if (recovery.unfinished.size > 0) await recovery.settle(path, what);
    if (intentLog.unfinished.size > 0) await intentLog.settle(path, what);
  };

  const underWay = new Set<Promise<unknown>>();

  const change = <T>(path: Path, work: () => Promise<T>): Promise<T> => {
    const done = named(path, async () => {
      await recover(path, 'tree');
      return work();
    });
    underWay.add(done);
    const land = () => underWay.delete(done);
    done.then(land, land);
    return done;
  };

  const changeBoth = <T>(from: Path, to: Path, work: () => Promise<T>): Promise<T> =>
    change(from, async () => {
      await recover(to, 'tree');
      return work();
    });

  async function* walk(...[path, ...how]: Parameters<Files['walk']>): AsyncIterable<Listing> {
    await recover(path, 'tree');
    yield* reader.walk(path, ...how);
  }

  /** Returns whether only this machine has the entry: it can have no link then. */
  const isOnlyHere = async (path: Path) =>
    localFiles.owns(path) || (await placeholders.get(path)) !== undefined;

  /** Returns the entry for a shared link, after committing it to the service. */
  const shareable = async (path: Path): Promise<Entry> => {
    if (localFiles.owns(path))
      throw new FileError('unsupported', `cannot share ${path}: it is kept on this machine only`);
    await placeholders.commit(path);
    const entry = await reader.stat(path);
    if (!entry) throw new FileError('not-found', `${path} is not there`);
    return entry;
  };

  return {
    known: (path) => (recovery.mayMiss || intentLog.unfinished.size > 0 ? undefined : reader.known(path)),
    stat: (path, signal) =>
      named(path, async () => {
        await recover(path, 'entry');
        return reader.stat(path, signal);
      }),
    statForWrite: (path, options, signal) =>
      named(path, async () => {
        await recover(path, 'entry');
        return reader.statForWrite(path, options, signal);
      }),
    list: (path, ...how) =>
      named(path, async () => {
        await recover(path, 'folder');
        return reader.list(path, ...how);
      }),
    walk: (path, ...how) => namedAll(path, walk(path, ...how)),
    inMemory: (file) => reader.inMemory(file),
    read: (file, range, signal) => namedAll(file.path, reader.read(file, range, signal)),
    write: (path, body, options, signal) => change(path, () => writer.write(path, body, options, signal)),
    keepPlaceholder: (path, placeholderMs) => change(path, () => writer.keepPlaceholder(path, placeholderMs)),
    commitPlaceholder: (path) => change(path, () => placeholders.commit(path)),
    createFolder: (path) => change(path, () => writer.createFolder(path)),
    remove: (path, options) => change(path, () => remover.remove(path, options)),
    copy: (from, to, options) => changeBoth(from, to, () => mover.copy(from, to, options)),
    move: (from, to, options) => changeBoth(from, to, () => mover.move(from, to, options)),
    setModified: (path, modifiedMs) => change(path, () => writer.setModified(path, modifiedMs)),
    freeSpace: (signal) => quota.free(signal),
    sharedLink: (path, signal) =>
      named(path, async () => ((await isOnlyHere(path)) ? undefined : remote.sharedLink(path, signal))),
    shareLink: (path, settings) =>
      change(path, async () => replaceLink(remote, (await shareable(path)).path, settings)),
    unshareLink: (path) =>
      change(path, async () => ((await isOnlyHere(path)) ? undefined : revokeLinks(remote, path))),
    history: {
      versions: (path, signal) => named(path, () => history.versions(path, signal)),
      version: (path, rev, signal) => named(path, () => history.version(path, rev, signal)),
      read: (file, range, signal) => namedAll(file.path, history.read(file, range, signal)),
      restore: (path, rev) => change(path, () => history.restore(path, rev)),
      trash: (folder, signal) =>
        named(folder, async () => {
          await recover(folder, 'folder');
          return history.trash(folder, signal);
        }),
      undelete: (path) => change(path, () => history.undelete(path)),
    },
    sharedLinks: (path, signal) =>
      named(path ?? ROOT, async () => {
        if (path !== undefined && (await isOnlyHere(path))) return [];
        const links = await remote.sharedLinks(path, signal);
        return links.map((link) => ({ ...link, path: reader.displayed(link.path) }));
      }),
    createLink: (path, settings) =>
      change(path, async () => remote.createSharedLink((await shareable(path)).path, settings)),
    changeLink: (path, url, how) => change(path, () => changeLink(remote, path, url, how)),
    revokeLink: (path, url) => change(path, () => revokeLink(remote, path, url)),
    async idle() {
      while (underWay.size > 0) await Promise.allSettled(underWay);
    },
  };
}

async function named<T>(path: Path, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translated(error, path);
  }
}

async function* namedAll<T>(path: Path, items: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* items;
  } catch (error) {
    throw translated(error, path);
  }
}

function translated(error: unknown, path: Path): unknown {
  if (error instanceof LocalFileTooLarge) return new FileError('too-large', error.message, { cause: error });
  return fileErrorOf(error, path);
}

interface ReaderDeps {
  readonly metadata: MetadataCache;
  readonly localFiles: LocalFiles;
  readonly placeholders: Placeholders;
  readonly content: ContentReader;
}

/**
 * Reads what clients see: the service's entries, with placeholders and local files among them. The changes of a path use
 * it too, in their turn: it recovers nothing.
 */
export class Reader {
  /** The last listing made from each listing of the service: unchanged content must be the same object. */
  readonly #shown = new WeakMap<Listing, { readonly extra: string; readonly listing: Listing }>();

  constructor(private readonly deps: ReaderDeps) {}

  /** Returns who has the entry at `path`, if there is one. Nobody shows an entry that is being replaced. */
  keeperOf(path: Path): 'service' | 'machine' | 'nobody' {
    if (!MAY_BE_SPECIAL.test(path)) return 'service';
    if (isWithinWaiting(path)) return 'nobody';
    return this.deps.localFiles.owns(path) ? 'machine' : 'service';
  }

  known(path: Path): Entry | undefined {
    return this.keeperOf(path) === 'service' ? this.deps.metadata.known(path) : undefined;
  }

  stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    return this.#stat(path, { believesAbsence: false }, signal);
  }

  async statForWrite(
    path: Path,
    { isPinned }: { readonly isPinned: boolean },
    signal?: AbortSignal,
  ): Promise<Entry | undefined> {
    if (isPinned && this.keeperOf(path) === 'service') await this.deps.metadata.refresh(path);
    return this.#stat(path, { believesAbsence: true }, signal);
  }

  async #stat(
    path: Path,
    how: { readonly believesAbsence: boolean },
    signal: AbortSignal | undefined,
  ): Promise<Entry | undefined> {
    const { metadata, localFiles, placeholders } = this.deps;
    const keeper = this.keeperOf(path);
    if (keeper === 'nobody') return undefined;
    if (keeper === 'machine') return localFiles.stat(path);
    const entry = await metadata.statOrLast(path, how, signal);
    if (entry) return entry;
    const placeholder = await placeholders.get(path);
    if (placeholder) return placeholderEntry(placeholder);
    // A placeholder that was committed meanwhile is in the cache.
    const known = metadata.peek(path);
    return known === 'absent' ? undefined : known;
  }

  /** Returns `path` in the letter case of its entry if that is cached: without a call. */
  displayed(path: Path): Path {
    const known = this.deps.metadata.peek(path);
    return known === undefined || known === 'absent' ? path : known.path;
  }

  /**
   * Returns the folder in which `path` can be created. The service would create a missing folder by itself, and restore
   * one that was deleted a moment ago; WebDAV answers 409 (RFC 4918 §9.7.1). Throws `parent-missing`.
   */
  async parentOf(path: Path, signal?: AbortSignal): Promise<FolderEntry> {
    const { metadata, localFiles } = this.deps;
    const folder = parentOf(path);
    const isHere = this.keeperOf(folder) === 'machine';
    const parent = await (isHere ? localFiles.stat(folder) : metadata.stat(folder, signal));
    if (parent?.kind === 'folder') return parent;
    const why = parent ? 'is a file' : 'does not exist';
    throw new FileError('parent-missing', `cannot create ${path}: ${folder} ${why}`);
  }

  async list(path: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): Promise<Listing> {
    const { metadata, localFiles, placeholders } = this.deps;
    const keeper = this.keeperOf(path);
    if (keeper === 'nobody') throw new FileError('not-found', `${path} is not there`);
    if (keeper === 'machine') return this.#listLocal(path);
    // Placeholders first: one that is committed meanwhile is then found twice, instead of not at all.
    const [empty, litter] = await Promise.all([placeholders.in(path), localFiles.in(path)]);
    const base = await metadata.listOrLast(path, isCovered, signal);
    if (empty.length + litter.length === 0) return base;
    return this.#with(base, [...empty.map(placeholderEntry), ...litter.map(localEntry)]);
  }

  async *walk(path: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): AsyncIterable<Listing> {
    const { prefetch } = this.deps.metadata;
    const pending: Path[] = [path];
    let mayFetch = true;
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const listing = await this.#listIfThere(next, path, () => this.list(next, signal, isCovered));
      if (!listing) continue;
      yield listing;
      const folders = listing.children.filter((child) => child.kind === 'folder').map((child) => child.path);
      // One recursive listing for all of them. A tree that is too large for that is listed folder by folder.
      if (mayFetch && folders.filter((folder) => this.#isCold(folder)).length > 1)
        mayFetch = await prefetch.fetch(listing.folder, { ahead: false }, signal);
      for (const folder of folders.reverse()) pending.push(folder);
    }
  }

  /** Local files and placeholders have no content hash, and are not found. */
  inMemory(file: FileEntry): Uint8Array | undefined {
    return this.deps.content.inMemory(file);
  }

  async *read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array> {
    requireDownloadable(file);
    // Also placeholders, which the service does not have.
    if (file.sizeBytes === 0) return;
    const { localFiles, content } = this.deps;
    if (this.keeperOf(file.path) === 'machine') return yield await localFiles.read(file, range);
    try {
      yield* content.read(file, range, signal);
    } catch (error) {
      throw isApiFailure(error, 'not-found') ? await this.#reasonOfMissing(file, error, signal) : error;
    }
  }

  /** The service no longer has this revision of the file; it may have a newer one. */
  async #reasonOfMissing(file: FileEntry, error: unknown, signal: AbortSignal): Promise<unknown> {
    this.deps.metadata.forget(file.path);
    return (await this.stat(file.path, signal)) ? replaced(file.path) : error;
  }

  #isCold(folder: Path): boolean {
    return this.keeperOf(folder) === 'service' && this.deps.metadata.isCold(folder);
  }

  /** Returns `undefined` for a folder that disappeared during the walk; throws when the top folder did. */
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
    const folder = await this.deps.localFiles.stat(path);
    if (!folder) throw new FileError('not-found', `${path} is not there`);
    if (folder.kind === 'file') throw new FileError('not-a-folder', `${path} is not a folder`);
    return { folder, children: (await this.deps.localFiles.in(path)).map(localEntry) };
  }

  /** Adds entries of this machine to a listing of the service, whose own names win. */
  #with(base: Listing, own: readonly Entry[]): Listing {
    const extra = JSON.stringify(own);
    const shown = this.#shown.get(base);
    if (shown?.extra === extra) return shown.listing;
    const there = new Set(base.children.map((child) => foldName(child.name)));
    const beside = own.filter(({ name }) => !there.has(foldName(name)));
    const listing = { folder: base.folder, children: [...base.children, ...beside] };
    this.#shown.set(base, { extra, listing });
    return listing;
  }
}
