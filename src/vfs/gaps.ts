import type { Remote } from '../api/remote.ts';
import { isWithin, type Path } from '../util/path.ts';

/** Something that goes on at `paths`. */
interface Visit {
  readonly paths: readonly Path[];
  readonly done: Promise<unknown>;
}

/**
 * Gaps: the moments in which what belongs at a place has stepped aside. The service would make a missing folder
 * again for a file that is put into it, and say `not-found` of all the rest, so our own calls wait until a gap is
 * closed, and a gap until the calls before it are done. Each waits only for earlier ones.
 */
export class Gaps {
  readonly #visits = new Set<Visit>();
  readonly #gaps = new Set<Visit>();

  /** While `work` goes on nothing else of ours is done at `paths`, above or below. `work` calls the bare service. */
  open<T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> {
    return enter(this.#gaps, paths, [...this.#visits, ...this.#gaps], work);
  }

  /** `remote`, whose calls stay out of gaps. */
  guard(remote: Remote): Remote {
    const visit = <T>(paths: readonly Path[], work: () => Promise<T>): Promise<T> =>
      enter(this.#visits, paths, this.#gaps, work);
    const gapsAt = (path: Path) => touching([path], this.#gaps);
    async function* list(...[folder, options, signal]: Parameters<Remote['list']>) {
      // A gap does not wait for a listing, which may take long; what it changes is told to those who read that.
      const open = gapsAt(folder);
      if (open.length > 0) await Promise.allSettled(open);
      yield* remote.list(folder, options, signal);
    }
    return {
      stat: (path, signal) => visit([path], () => remote.stat(path, signal)),
      list,
      latestCursor: (signal) => remote.latestCursor(signal),
      awaitChange: (cursor, timeoutMs, signal) => remote.awaitChange(cursor, timeoutMs, signal),
      changesSince: (cursor, signal) => remote.changesSince(cursor, signal),
      download: (file, range, signal, options) => remote.download(file, range, signal, options),
      upload: (path, body, options, signal) =>
        visit([path], () => remote.upload(path, body, options, signal)),
      uploadsAtOnce: () => remote.uploadsAtOnce(),
      startSession: (signal) => remote.startSession(signal),
      appendSession: (session, part, signal) => remote.appendSession(session, part, signal),
      finishSession: (commit, signal) => visit([commit.path], () => remote.finishSession(commit, signal)),
      stageContents: (contents, signal) => remote.stageContents(contents, signal),
      finishSessions: (commits, signal, onOutcome) =>
        visit(
          commits.map(({ path }) => path),
          () => remote.finishSessions(commits, signal, onOutcome),
        ),
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

/** Does `work` at `paths` when what touches them of `others` is done, and is one of `those` until its own end. */
function enter<T>(
  those: Set<Visit>,
  paths: readonly Path[],
  others: Iterable<Visit>,
  work: () => Promise<T>,
): Promise<T> {
  const earlier = touching(paths, others);
  const done = earlier.length > 0 ? Promise.allSettled(earlier).then(work) : work();
  const visit = { paths, done };
  those.add(visit);
  const leave = () => those.delete(visit);
  done.then(leave, leave);
  return done;
}

function touching(paths: readonly Path[], visits: Iterable<Visit>): Promise<unknown>[] {
  const touches = (visit: Visit) =>
    visit.paths.some((one) => paths.some((other) => isWithin(one, other) || isWithin(other, one)));
  return [...visits].filter(touches).map(({ done }) => done);
}
