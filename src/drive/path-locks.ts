import type { AroundCommit, FeedChange, Remote } from '../api/remote.ts';
import { isKeyWithin, keyOf, type Path } from '../util/path.ts';

/** Running work at some paths. */
interface Holder {
  readonly keys: readonly string[];
  readonly done: Promise<unknown>;
}

/**
 * Shared and exclusive locks on paths within this process. Two locks overlap when a path of one equals a path of the
 * other or lies above it. Each lock waits only for earlier ones, so that locks are granted in the order of the calls.
 * The holder of a lock must not request another one that overlaps it: it would wait for itself.
 */
export class PathLocks {
  readonly #shared = new Set<Holder>();
  readonly #exclusive = new Set<Holder>();

  /** Calls `onExclusive` with each path of an exclusive lock when it is granted. */
  constructor(private readonly onExclusive: (path: Path) => void = () => {}) {}

  /** Runs `work` while no overlapping exclusive lock is held. */
  shared<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return enter(this.#shared, paths, [this.#exclusive], work);
  }

  /** Runs `work` while no other overlapping lock is held. */
  exclusive<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return enter(this.#exclusive, paths, [this.#shared, this.#exclusive], () => {
      for (const path of paths) this.onExclusive(path);
      return work();
    });
  }

  /** Resolves when the exclusive locks on `path` are released; returns `undefined` when there are none. */
  untilShareable(path: Path): Promise<unknown> | undefined {
    const earlier = overlapping([keyOf(path)], [this.#exclusive]);
    return earlier.length > 0 ? Promise.allSettled(earlier) : undefined;
  }
}

/**
 * Guards `remote` with `locks`: calls for a path wait while an entry at, above or below it is being replaced. The service
 * would create a missing folder again for a new file, and answer `not-found` to everything else. `look` sees each page of
 * listings and of the change feed.
 */
export function guardRemote(
  remote: Remote,
  locks: PathLocks,
  look: (changes: readonly FeedChange[]) => void,
): Remote {
  const shared = <T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> => locks.shared(paths, work);
  async function* list(...[folder, options, signal]: Parameters<Remote['list']>) {
    // A replacement does not wait for a listing, which may be long: `onExclusive` of `locks` tells the cache.
    const shareable = locks.untilShareable(folder);
    if (shareable !== undefined) await shareable;
    for await (const page of remote.list(folder, options, signal)) {
      look(page.changes);
      yield page;
    }
  }
  return {
    availability: remote.availability,
    stat: (path, signal) => shared([path], () => remote.stat(path, signal)),
    locate: (id, signal) => remote.locate(id, signal),
    list,
    latestCursor: (signal) => remote.latestCursor(signal),
    awaitChange: (cursor, timeoutMs, signal) => remote.awaitChange(cursor, timeoutMs, signal),
    async changesSince(cursor, signal) {
      const page = await remote.changesSince(cursor, signal);
      look(page.changes);
      return page;
    },
    download: (file, range, signal, options) => remote.download(file, range, signal, options),
    write(path, body, options, signal) {
      const { aroundCommit = (commit) => commit() } = options;
      // Only the commit: a replacement does not wait for a body, which may be long.
      const guarded: AroundCommit = (commit) => aroundCommit(() => shared([path], commit));
      return remote.write(path, body, { ...options, aroundCommit: guarded }, signal);
    },
    createFolder: (path, signal) => shared([path], () => remote.createFolder(path, signal)),
    remove: (path, options, signal) => shared([path], () => remote.remove(path, options, signal)),
    copy: (from, to, signal) => shared([from, to], () => remote.copy(from, to, signal)),
    move: (from, to, signal, id) => shared([from, to], () => remote.move(from, to, signal, id)),
    revisions: (path, options, signal) => shared([path], () => remote.revisions(path, options, signal)),
    restore: (path, rev, signal) => shared([path], () => remote.restore(path, rev, signal)),
    quota: (signal) => remote.quota(signal),
    search: (query, cursor, signal) => remote.search(query, cursor, signal),
    thumbnail: (file, signal) => remote.thumbnail(file, signal),
    sharedLink: (path, signal) => shared([path], () => remote.sharedLink(path, signal)),
    sharedLinks: (path, signal) =>
      shared(path === undefined ? [] : [path], () => remote.sharedLinks(path, signal)),
    createSharedLink: (path, settings, signal) =>
      shared([path], () => remote.createSharedLink(path, settings, signal)),
    changeSharedLink: (url, change, signal) => remote.changeSharedLink(url, change, signal),
    revokeSharedLink: (url, signal) => remote.revokeSharedLink(url, signal),
  };
}

function enter<T>(
  own: Set<Holder>,
  paths: readonly Path[],
  others: readonly Iterable<Holder>[],
  work: () => Promise<T>,
): Promise<T> {
  const keys = paths.map(keyOf);
  const earlier = overlapping(keys, others);
  const done = earlier.length > 0 ? Promise.allSettled(earlier).then(work) : work();
  const holder = { keys, done };
  own.add(holder);
  const leave = () => own.delete(holder);
  done.then(leave, leave);
  return done;
}

function overlapping(keys: readonly string[], holders: readonly Iterable<Holder>[]): Promise<unknown>[] {
  const found: Promise<unknown>[] = [];
  for (const some of holders)
    for (const holder of some) if (overlap(holder.keys, keys)) found.push(holder.done);
  return found;
}

function overlap(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => others.some((other) => isKeyWithin(one, other) || isKeyWithin(other, one)));
}
