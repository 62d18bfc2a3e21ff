import type { AroundCommit, Remote } from '../api/remote.ts';
import type { Path } from '../util/path.ts';
import type { PathLocks } from './path-locks.ts';

/**
 * Guards `remote` with `locks`: calls for a path wait while an entry at, above or below it is being replaced. The service
 * would create a missing folder again for a new file, and answer `not-found` to everything else.
 */
export function guardRemote(remote: Remote, locks: PathLocks): Remote {
  const shared = <T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> => locks.shared(paths, work);
  async function* list(...[folder, options, signal]: Parameters<Remote['list']>) {
    // A replacement does not wait for a listing, which may be long: the cache learns of the change.
    const shareable = locks.untilShareable(folder);
    if (shareable !== undefined) await shareable;
    yield* remote.list(folder, options, signal);
  }
  return {
    availability: remote.availability,
    stat: (path, signal) => shared([path], () => remote.stat(path, signal)),
    locate: (id, signal) => remote.locate(id, signal),
    list,
    latestCursor: (signal) => remote.latestCursor(signal),
    awaitChange: (cursor, timeoutMs, signal) => remote.awaitChange(cursor, timeoutMs, signal),
    changesSince: (cursor, signal) => remote.changesSince(cursor, signal),
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
    quota: (signal) => remote.quota(signal),
    sharedLink: (path, signal) => shared([path], () => remote.sharedLink(path, signal)),
    createSharedLink: (path, settings, signal) =>
      shared([path], () => remote.createSharedLink(path, settings, signal)),
    revokeSharedLink: (url, signal) => remote.revokeSharedLink(url, signal),
  };
}
