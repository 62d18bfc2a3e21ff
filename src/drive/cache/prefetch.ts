import { isApiFailure } from '../../api/errors.ts';
import type { Change, Entry, FolderEntry, Page } from '../../api/remote.ts';
import { elapsedMs, type Instant, instantIn, type Moment, momentNow, msBetween } from '../../util/clock.ts';
import { isKeyWithin, keyOf, nameOf, type Path, parentKeyOf, ROOT } from '../../util/path.ts';
import { Alarm } from '../../util/wait.ts';
import type { LookupsDeps } from './lookups.ts';
import { doubtLooked, type Fetch, takeChanges } from './recency.ts';
import { CachedFolder, placedIn, withTimeOf } from './tree-cache.ts';

/** Maximum number of entries of one recursive listing, about 30 MB of memory. A larger tree is listed folder by folder. */
const ENTRIES_MAX = 50_000;

/** This many uncached sibling listings within the window mean a tree walk; `atOnce` applies to a program's pace. */
const WALKING = { folders: 3, atOnce: 2, withinMs: 10_000 };

/** Maximum time between two listings of a program, in ms; a person takes longer. */
const PROGRAM_MS = 1_000;

/** Pause before a tree is prefetched again, in ms. */
const PAUSE_MS = 600_000;

/** How long a request waits for a prefetch that covers its folder, from the prefetch's start, in ms. */
const AHEAD_MS = 1_000;

/** Maximum number of parents that are watched for a tree walk. */
const WATCHED_MAX = 1_000;

interface Watched {
  /** Keys of the listed children. */
  readonly folders: Set<string>;
  /** Time of the last of these listings. */
  last: Instant;
  readonly until: Instant;
  /** Whether a prefetch of the parent was attempted. */
  readonly isRead: boolean;
}

/** A running prefetch for a client that walks the tree. */
interface Ahead {
  readonly key: string;
  readonly since: Instant;
  /** Never rejects. */
  readonly done: Promise<unknown>;
}

/** The children of each folder by folded name, by the folder's key. */
type Read = Map<string, Map<string, Entry>>;

/** Reads whole subtrees with one recursive listing instead of one listing per folder. */
export class Prefetch {
  readonly #watched = new Map<string, Watched>();
  #ahead: Ahead | undefined;
  readonly #stop = new AbortController();

  constructor(private readonly deps: LookupsDeps) {}

  /** Caches everything below `folder`. Returns `false` when the tree is too large or changes too much meanwhile. */
  async fetch(folder: FolderEntry, how: { readonly ahead: boolean }, signal?: AbortSignal): Promise<boolean> {
    const { cache, clock } = this.deps;
    const fetch = cache.inFlight.begin('tree', keyOf(folder.path));
    const asked = momentNow(clock);
    try {
      const read = await this.#read(folder, how, signal);
      await this.deps.afterAnswer?.();
      if (!read) this.#leaveAlone(keyOf(folder.path));
      if (!read || fetch.isVoid) return false;
      this.#keep(folder, read, fetch, asked);
      return true;
    } catch (error) {
      if (isApiFailure(error, 'reset', 'not-found', 'not-folder')) return false;
      throw error;
    } finally {
      cache.inFlight.end(fetch);
    }
  }

  /** Records that `folder` is about to be listed uncached, and prefetches its siblings when a client walks the tree. */
  notice(folder: FolderEntry): void {
    const { cache, clock } = this.deps;
    if (folder.path === ROOT) return;
    const key = keyOf(folder.path);
    const parentKey = parentKeyOf(key);
    const now = clock.instant();
    const watched = this.#watched.get(parentKey);
    if (!watched || watched.until <= now) {
      const until = instantIn(clock, WALKING.withinMs);
      this.#watch(parentKey, { folders: new Set([key]), last: now, until, isRead: false });
      return;
    }
    if (watched.isRead) return;
    const enough = msBetween(watched.last, now) < PROGRAM_MS ? WALKING.atOnce : WALKING.folders;
    if (watched.folders.size < WALKING.folders) watched.folders.add(key);
    watched.last = now;
    if (watched.folders.size < enough || this.#ahead || this.#stop.signal.aborted) return;
    const parent = cache.peek(parentKey);
    if (parent === undefined || parent === 'absent' || parent.kind === 'file') return;
    this.#leaveAlone(parentKey);
    const done = this.fetch(parent, { ahead: true }, this.#stop.signal)
      // A failed prefetch harms nobody: requests list their folders themselves.
      .catch(() => {})
      .finally(() => {
        this.#ahead = undefined;
      });
    this.#ahead = { key: parentKey, since: now, done };
  }

  /** Returns whether a running prefetch covers `path`. */
  isComing(path: Path): boolean {
    return this.#ahead !== undefined && isKeyWithin(keyOf(path), this.#ahead.key);
  }

  /**
   * Waits, for a bounded time, for a running prefetch that covers `folder`, because a listing would be a wasted call.
   * Returns whether there was one.
   */
  async awaitAhead(folder: FolderEntry, signal?: AbortSignal): Promise<boolean> {
    const { clock } = this.deps;
    if (!this.#ahead || !this.isComing(folder.path)) return false;
    const leftMs = AHEAD_MS - elapsedMs(clock, this.#ahead.since);
    if (leftMs <= 0) return false;
    const alarm = new Alarm(clock);
    void this.#ahead.done.then(() => alarm.ring());
    await alarm.sleep(leftMs, signal);
    signal?.throwIfAborted();
    return true;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#ahead?.done;
  }

  #leaveAlone(key: string): void {
    const { clock } = this.deps;
    const until = instantIn(clock, PAUSE_MS);
    this.#watch(key, { folders: new Set(), last: clock.instant(), until, isRead: true });
  }

  #watch(key: string, watched: Watched): void {
    this.#watched.delete(key);
    this.#watched.set(key, watched);
    const [oldest] = this.#watched.keys();
    if (this.#watched.size > WATCHED_MAX && oldest !== undefined) this.#watched.delete(oldest);
  }

  async #read(
    folder: FolderEntry,
    { ahead }: { ahead: boolean },
    signal?: AbortSignal,
  ): Promise<Read | undefined> {
    const { remote, times } = this.deps;
    const read: Read = new Map([[keyOf(folder.path), new Map()]]);
    let count = 0;
    const pages: AsyncIterable<Page> = remote.list(folder.path, { recursive: true, ahead }, signal);
    for await (const { changes } of pages) {
      count += changes.length;
      if (count > ENTRIES_MAX) return undefined;
      const puts = changes.flatMap((change) => (change.kind === 'put' ? change.entry : []));
      const shown = (await times.applyTo(puts))[Symbol.iterator]();
      for (const change of changes)
        this.#add(read, change, change.kind === 'put' ? shown.next().value : undefined);
    }
    return read;
  }

  #add(read: Read, change: Change, entry: Entry | undefined): void {
    const path = entry?.path ?? (change.kind === 'deleted' ? change.path : change.entry.path);
    const key = keyOf(path);
    const name = nameOf(key as Path);
    if (!entry) {
      read.get(parentKeyOf(key))?.delete(name);
      return;
    }
    if (this.deps.isHidden(entry.name)) return;
    const siblings = read.get(parentKeyOf(key)) ?? new Map<string, Entry>();
    read.set(parentKeyOf(key), siblings.set(name, entry));
    if (entry.kind === 'folder' && !read.has(key)) read.set(key, new Map());
  }

  /** Caches `read` from the top down, since a folder's own entry has its name in display case. No `await` in here. */
  #keep(top: FolderEntry, read: Read, fetch: Fetch, asked: Moment): void {
    const { cache, isHidden } = this.deps;
    doubtLooked(fetch, (key) => read.get(parentKeyOf(key))?.get(nameOf(key as Path)));
    const changes = takeChanges(fetch);
    const changesIn = new Map<string, string[]>();
    for (const key of changes.keys()) {
      const parentKey = parentKeyOf(key);
      changesIn.set(parentKey, [...(changesIn.get(parentKey) ?? []), key]);
    }
    const pending: FolderEntry[] = [top];
    for (let folder = pending.pop(); folder; folder = pending.pop()) {
      const key = keyOf(folder.path);
      if (fetch.dropped.some((dropped) => isKeyWithin(key, dropped))) continue;
      const before = cache.folder(key);
      const children = new Map<string, Entry>();
      for (const [name, entry] of read.get(key) ?? [])
        children.set(name, withTimeOf(before?.get(name), placedIn(folder.path, entry)));
      const listed = CachedFolder.whole(folder.path, asked, children);
      for (const changed of changesIn.get(key) ?? []) {
        const name = nameOf(changed as Path);
        const now = changes.get(changed);
        if (now === undefined || now === 'unsure') listed.doubt(name);
        else listed.set(name, now === 'absent' || isHidden(now.name) ? 'absent' : placedIn(folder.path, now));
      }
      // A cached listing stays the same object.
      if (!before?.isWhole) cache.keepFolder(key, listed);
      for (const child of listed.entries())
        if (child.kind === 'folder' && read.has(keyOf(child.path))) pending.push(child);
    }
  }
}
