import type { AroundCommit, Remote } from '../api/remote.ts';
import type { Path } from '../util/path.ts';
import { PathLocks } from './path-locks.ts';

/**
 * Gaps: the moments in which what belongs at a place has stepped aside. The service would make a missing folder
 * again for a file that is put into it, and say `not-found` of all the rest, so our own calls wait until a gap is
 * closed, and a gap until the calls before it are done. Each waits only for earlier ones.
 */
export class Gaps {
  readonly #locks = new PathLocks();

  /** While `work` goes on nothing else of ours is done at `paths`, above or below. `work` calls the bare service. */
  open<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return this.#locks.exclusive(paths, work);
  }

  /** `remote`, whose calls stay out of gaps. */
  guard(remote: Remote): Remote {
    const locks = this.#locks;
    const visit = <T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> =>
      locks.shared(paths, work);
    async function* list(...[folder, options, signal]: Parameters<Remote['list']>) {
      // A gap does not wait for a listing, which may take long; what it changes is told to those who read that.
      const closed = locks.untilShareable(folder);
      if (closed !== undefined) await closed;
      yield* remote.list(folder, options, signal);
    }
    return {
      availability: remote.availability,
      stat: (path, signal) => visit([path], () => remote.stat(path, signal)),
      locate: (id, signal) => remote.locate(id, signal),
      list,
      latestCursor: (signal) => remote.latestCursor(signal),
      awaitChange: (cursor, timeoutMs, signal) => remote.awaitChange(cursor, timeoutMs, signal),
      changesSince: (cursor, signal) => remote.changesSince(cursor, signal),
      download: (file, range, signal, options) => remote.download(file, range, signal, options),
      write(path, body, options, signal) {
        const { aroundCommit = (commit) => commit() } = options;
        // Only the commit: a gap does not wait for a body, which may take long.
        const guarded: AroundCommit = (commit) => aroundCommit(() => visit([path], commit));
        return remote.write(path, body, { ...options, aroundCommit: guarded }, signal);
      },
      createFolder: (path, signal) => visit([path], () => remote.createFolder(path, signal)),
      remove: (path, options, signal) => visit([path], () => remote.remove(path, options, signal)),
      copy: (from, to, signal) => visit([from, to], () => remote.copy(from, to, signal)),
      move: (from, to, signal, id) => visit([from, to], () => remote.move(from, to, signal, id)),
      quota: (signal) => remote.quota(signal),
      sharedLink: (path, signal) => visit([path], () => remote.sharedLink(path, signal)),
      createSharedLink: (path, settings, signal) =>
        visit([path], () => remote.createSharedLink(path, settings, signal)),
      revokeSharedLink: (url, signal) => remote.revokeSharedLink(url, signal),
    };
  }
}
