import PQueue from 'p-queue';
import { isApiFailure } from '../../api/errors.ts';
import type { FileEntry, Remote } from '../../api/remote.ts';
import { isWithin, keyOf, nameOf, namesOf, type Path, parentOf, pathOf, ROOT } from '../../util/path.ts';
import type { ByteRange } from '../../util/ranges.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import { placedIn } from '../cache/tree-cache.ts';
import type { ContentReader } from '../content/content-reader.ts';
import { FileError, requireDownloadable } from '../errors.ts';
import type { Deleted, History, Trash, Versions } from '../history.ts';
import type { LocalFiles } from '../local-files.ts';
import type { ModifiedTimes } from '../modified-times.ts';
import { isWaiting, isWithinWaiting } from '../names.ts';
import type { PathLocks } from '../path-locks.ts';
import type { Placeholders } from '../placeholders.ts';
import type { QuotaCache } from '../quota-cache.ts';
import type { Reader } from './tree.ts';

/** Maximum number of versions that are listed: the service answers no more with one call. */
const VERSIONS_MAX = 100;

/** Maximum number of deleted names that are described; each costs one or two calls. */
const TRASH_MAX = 500;

/** Number of files of a deleted folder that are looked at to find out whether they were only moved. */
const PROBES_MAX = 20;

/**
 * Maximum number of pages that are listed in order to leave moved folders out of the trash: some 20,000 entries. In a
 * larger drive they are shown.
 */
const PAGES_MAX = 10;

/** Number of calls at a time: few enough to leave room for other requests of the account. */
const CALLS_AT_ONCE = 8;

/**
 * How long before the last deletion in a folder another one may be and still count as part of it, in ms. The service
 * gives times of files only, in whole seconds, and may take a while to delete a large folder.
 */
const SAME_DELETION_MS = 60_000;

interface FileHistoryDeps {
  readonly remote: Pick<Remote, 'list' | 'revisions' | 'restore' | 'locate' | 'createFolder'>;
  readonly metadata: MetadataCache;
  readonly localFiles: LocalFiles;
  readonly placeholders: Placeholders;
  readonly content: ContentReader;
  readonly reader: Reader;
  readonly times: ModifiedTimes;
  readonly locks: PathLocks;
  readonly quota: QuotaCache;
}

/** The last entry at a path where nothing is now. A folder is known by its name only. */
type Last =
  | { readonly kind: 'file'; readonly file: FileEntry; readonly deletedMs: number | undefined }
  | { readonly kind: 'folder' }
  /** The service has nothing to restore, or a move has taken the file elsewhere. */
  | { readonly kind: 'none' };

/** Lists deleted paths. */
type Listed = () => Promise<readonly Path[]>;

/** Lists and restores former versions and deleted files. */
export class FileHistory implements History {
  constructor(private readonly deps: FileHistoryDeps) {}

  async versions(path: Path, signal?: AbortSignal): Promise<Versions> {
    this.#requireAtService(path);
    await this.deps.placeholders.commit(path);
    const { remote } = this.deps;
    const limit = VERSIONS_MAX;
    const here = await remote.revisions(path, { limit }, signal);
    if (here.isDeleted) return { files: here.files, hasMore: here.hasMore, currentRev: undefined };
    // Programs save by moving a new file over the old one, and people rename files: both kinds of versions count.
    const before = await remote.revisions(path, { limit, followsMoves: true }, signal);
    const files = merged(here.files, before.files);
    return {
      files: files.slice(0, VERSIONS_MAX),
      hasMore: here.hasMore || before.hasMore || files.length > VERSIONS_MAX,
      currentRev: here.files[0]?.rev,
    };
  }

  async version(path: Path, rev: string, signal?: AbortSignal): Promise<FileEntry> {
    const { files } = await this.versions(path, signal);
    const found = files.find((file) => file.rev === rev);
    if (!found) throw new FileError('not-found', `the storage service has no such version of ${path}`);
    return found;
  }

  async *read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array> {
    requireDownloadable(file);
    if (file.sizeBytes > 0) yield* this.deps.content.read(file, range, signal);
  }

  async restore(path: Path, rev: string): Promise<FileEntry> {
    this.#requireAtService(path);
    await this.deps.placeholders.commit(path);
    return this.deps.locks.exclusive([path], () => this.#restoreFile(path, rev));
  }

  async trash(folder: Path, signal?: AbortSignal): Promise<Trash> {
    const { reader, localFiles } = this.deps;
    const isThere = (await reader.stat(folder, signal)) !== undefined;
    const [listed, pagesMax] = isThere
      ? [folder, PAGES_MAX]
      : [parentOf(await this.#highestMissing(folder)), Number.POSITIVE_INFINITY];
    let all: Promise<readonly Path[]> | undefined;
    const below = () => {
      all ??= this.#deletedIn(listed, { recursive: true, pagesMax }, signal);
      return all;
    };
    const deleted = isThere
      ? await this.#goneFrom(folder, signal)
      : membersOf(folder, await this.#deletedBelow(folder, below, signal));
    if (deleted.length === 0 && !isThere && (await this.#lastAt(folder, signal)).kind !== 'folder')
      throw new FileError('not-found', `${folder} is not there`);
    const paths = deleted.filter((path) => !isWaiting(nameOf(path)) && !localFiles.owns(path)).sort();
    const described = await eachOf(paths.slice(0, TRASH_MAX), async (path): Promise<Deleted[]> => {
      const last = await this.#lastAt(path, signal);
      if (last.kind === 'none') return [];
      if (last.kind === 'folder')
        return (await this.#hasDeleted(path, below, signal)) ? [{ path, file: undefined }] : [];
      const { file, deletedMs } = last;
      return [{ path, file, ...(deletedMs !== undefined && { deletedMs }) }];
    });
    return { items: described.flat(), leftOut: Math.max(0, paths.length - TRASH_MAX) };
  }

  /** Returns the paths in a folder that had an entry once and have none now, also none that only davgate knows. */
  async #goneFrom(folder: Path, signal: AbortSignal | undefined): Promise<readonly Path[]> {
    // First what is there: a name that is created meanwhile is then missing in both, and in neither twice.
    const { children } = await this.deps.reader.list(folder, signal);
    const present = new Set(children.map((child) => keyOf(child.path)));
    const deleted = await this.#deletedIn(folder, { recursive: false }, signal);
    return deleted.filter((path) => !present.has(keyOf(path)));
  }

  async undelete(path: Path): Promise<void> {
    this.#requireAtService(path);
    await this.deps.locks.exclusive([path], async () => {
      if (await this.deps.reader.stat(path)) throw new FileError('exists', `something is at ${path} again`);
      const last = await this.#lastAt(path);
      if (last.kind === 'none') throw nothingAt(path);
      if (last.kind === 'file') await this.#restoreFile(path, last.file.rev);
      else await this.#restoreFolder(path);
    });
  }

  /** Throws for a path that the service does not have. */
  #requireAtService(path: Path): void {
    if (path === ROOT) throw new FileError('is-a-folder', 'the root of the drive is a folder');
    if (isWithinWaiting(path)) throw new FileError('not-found', `${path} is not there`);
    if (this.deps.localFiles.owns(path))
      throw new FileError('unsupported', `${path} is kept on this machine only, without former versions`);
  }

  async #restoreFile(path: Path, rev: string): Promise<FileEntry> {
    const { metadata, remote, times, quota } = this.deps;
    const before = await metadata.stat(path);
    const top = await this.#highestMissing(path);
    const folder = top === path ? await metadata.stat(parentOf(path)) : undefined;
    const change = metadata.begin([top], { tree: top !== path });
    let entry: FileEntry;
    try {
      const restored = await remote.restore(path, rev);
      entry = folder ? placedIn(folder.path, restored) : restored;
      entry = (await times.applyTo([entry]))[0] ?? entry;
    } catch (error) {
      await change.failed(error);
      throw error;
    }
    // The folders that came back with the file are unknown yet.
    await change.end(top === path ? [[path, entry]] : []);
    quota.add(entry.sizeBytes - (before?.kind === 'file' ? before.sizeBytes : 0));
    return entry;
  }

  /** Restores a folder: the service restores files only, and creates the folders above them. */
  async #restoreFolder(path: Path): Promise<void> {
    const { metadata, remote, quota } = this.deps;
    const { files, emptyFolders } = await this.#deletedWith(path);
    if (files.length + emptyFolders.length === 0) throw nothingAt(path);
    const change = metadata.begin([await this.#highestMissing(path)], { tree: true });
    try {
      const restored = await eachOf(files, (file) => remote.restore(file.path, file.rev));
      for (const { sizeBytes } of restored) quota.add(sizeBytes);
      await eachOf(emptyFolders, (folder) => this.#createMissing(folder));
    } finally {
      await change.end([]);
    }
  }

  /** Two of the folders may lie in each other: creating one creates the folders above it. */
  async #createMissing(folder: Path): Promise<void> {
    try {
      await this.deps.remote.createFolder(folder);
    } catch (error) {
      if (!isApiFailure(error, 'conflict-folder')) throw error;
    }
  }

  /**
   * Returns the files below a deleted folder that were deleted last, all at one time, and the folders below it, or the
   * folder itself, in which no file was deleted at all.
   */
  async #deletedWith(
    folder: Path,
  ): Promise<{ readonly files: readonly FileEntry[]; readonly emptyFolders: readonly Path[] }> {
    const above = parentOf(await this.#highestMissing(folder));
    const below = await this.#deletedBelow(folder, () => this.#deletedIn(above, { recursive: true }));
    const lasts = await eachOf(below, async (path) => ({ path, last: await this.#lastAt(path) }));
    const files = lasts.flatMap(({ last }) => (last.kind === 'file' ? [last] : []));
    const newestMs = files.reduce((newest, { deletedMs = 0 }) => Math.max(newest, deletedMs), 0);
    const folders = lasts.flatMap(({ path, last }) => (last.kind === 'folder' ? [path] : []));
    const others = lasts.flatMap(({ path, last }) => (last.kind === 'folder' ? [] : [path]));
    const isEmpty = (path: Path) => !others.some((other) => isWithin(other, path));
    return {
      files: files
        .filter(({ deletedMs = newestMs }) => deletedMs >= newestMs - SAME_DELETION_MS)
        .map(({ file }) => file),
      emptyFolders: [folder, ...folders].filter(isEmpty),
    };
  }

  /**
   * Returns whether a deleted folder has something to restore: a move has left nothing. Of the files in it only some are
   * looked at.
   */
  async #hasDeleted(folder: Path, above: Listed, signal: AbortSignal | undefined): Promise<boolean> {
    let below: readonly Path[];
    try {
      below = await this.#deletedBelow(folder, above, signal);
    } catch (error) {
      if (error instanceof FileError && error.fault === 'too-many') return true;
      throw error;
    }
    if (below.length === 0 || below.length > PROBES_MAX) return true;
    for (const path of below) if ((await this.#lastAt(path, signal)).kind === 'file') return true;
    return false;
  }

  /** Returns the paths below a deleted folder that had an entry once. `above` lists those below a folder over it. */
  async #deletedBelow(folder: Path, above: Listed, signal?: AbortSignal): Promise<readonly Path[]> {
    let listed: readonly Path[];
    try {
      listed = await this.#deletedIn(folder, { recursive: true }, signal);
    } catch (error) {
      // The embedded service lists no folder that is deleted.
      if (!isApiFailure(error, 'not-found')) throw error;
      listed = await above();
    }
    return listed.filter((path) => isWithin(path, folder) && keyOf(path) !== keyOf(folder));
  }

  /** Returns the paths in a folder that had an entry once and have none now. Throws `too-many` after `pagesMax` pages. */
  async #deletedIn(
    folder: Path,
    {
      recursive,
      pagesMax = Number.POSITIVE_INFINITY,
    }: { readonly recursive: boolean; readonly pagesMax?: number },
    signal?: AbortSignal,
  ): Promise<readonly Path[]> {
    const deleted = new Map<string, Path>();
    const present = new Set<string>();
    let pages = 0;
    const options = { recursive, withDeleted: true };
    for await (const { changes } of this.deps.remote.list(folder, options, signal)) {
      pages += 1;
      if (pages > pagesMax) throw new FileError('too-many', `${folder} holds too much to be looked through`);
      for (const change of changes) {
        if (change.kind === 'put') present.add(keyOf(change.entry.path));
        else deleted.set(keyOf(change.path), change.path);
      }
    }
    return [...deleted].filter(([key]) => !present.has(key)).map(([, path]) => path);
  }

  /** Returns what was at `path`, where nothing is now. */
  async #lastAt(path: Path, signal?: AbortSignal): Promise<Last> {
    const { remote } = this.deps;
    try {
      const { files, isDeleted, deletedMs } = await remote.revisions(path, { limit: 1 }, signal);
      const [file] = files;
      // A moved file leaves a deletion at its old path too, but it is not lost.
      if (!file || !isDeleted || (await remote.locate(file.id, signal)) !== undefined)
        return { kind: 'none' };
      return { kind: 'file', file, deletedMs };
    } catch (error) {
      if (isApiFailure(error, 'not-file')) return { kind: 'folder' };
      if (isApiFailure(error, 'not-found')) return { kind: 'none' };
      throw error;
    }
  }

  /** Returns the highest missing folder above `path`, or `path` itself if its folder is there. */
  async #highestMissing(path: Path): Promise<Path> {
    let highest = path;
    for (let folder = parentOf(path); folder !== ROOT; folder = parentOf(folder)) {
      if (await this.deps.metadata.stat(folder)) break;
      highest = folder;
    }
    return highest;
  }
}

/**
 * Returns `here`, newest first, with those of `before` that are not among them. The revision that a move has made is left
 * out: it has the content and the time of one that is there.
 */
function merged(here: readonly FileEntry[], before: readonly FileEntry[]): readonly FileEntry[] {
  const stateOf = ({ committedMs, contentHash, rev }: FileEntry) => `${committedMs} ${contentHash ?? rev}`;
  const revs = new Set(here.map(({ rev }) => rev));
  const states = new Set(here.map(stateOf));
  const others = before.filter((file) => !revs.has(file.rev) && !states.has(stateOf(file)));
  // Times are whole seconds: the sort keeps the order of equal ones.
  return [...here, ...others].sort((one, other) => other.committedMs - one.committedMs);
}

/** Returns the paths directly in `folder` that lead to `below`, or are among them. */
function membersOf(folder: Path, below: readonly Path[]): readonly Path[] {
  const depth = namesOf(folder).length + 1;
  const members = below.map((path) => pathOf(namesOf(path).slice(0, depth)));
  return [...new Map(members.map((path) => [keyOf(path), path])).values()];
}

function nothingAt(path: Path): FileError {
  return new FileError('not-found', `nothing can be restored at ${path}`);
}

/** Runs `work` for each item, some at a time, and returns the results in order. After a failure it starts no more. */
async function eachOf<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const queue = new PQueue({ concurrency: CALLS_AT_ONCE });
  try {
    return await queue.addAll(items.map((item) => () => work(item)));
  } finally {
    queue.clear();
    await queue.onIdle();
  }
}
