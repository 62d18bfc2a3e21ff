import { createHash } from 'node:crypto';
import { type Path, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { ChangeLog, LoggedChanges } from '../files.ts';
import type { FolderRights, FolderRule } from './folder-rights.ts';
import type { Mounts, Place } from './mounts.ts';
import { withShownErrors } from './shown-errors.ts';

/** The part of a folder that is in one drive, and the log of that drive. */
interface LoggedPlace extends Place {
  readonly log: ChangeLog;
}

/**
 * The changes of a user's drives. The position in the folder above all drives is the list of the positions in each of them.
 * It is not valid any more when another folder, or a file, is in the place of a drive's root, because the log of a folder
 * does not tell that. Returns `undefined` if a drive has no log.
 */
export function viewChangeLog(mounts: Mounts): ChangeLog | undefined {
  const logs = new Map<Place['mount'], ChangeLog>();
  for (const mount of mounts.all) {
    const { changeLog } = mount.drive;
    if (!changeLog) return undefined;
    logs.set(mount, withShownErrors(changeLog, { root: mount.inner(mount.at), at: mount.at }));
  }

  const placesOf = (folder: Path): readonly LoggedPlace[] => {
    const place = mounts.find(folder);
    const tops = mounts.all.map((mount) => ({ mount, path: mount.inner(mount.at) }));
    const places = place ? [place] : folder === ROOT ? tops : [];
    return places.flatMap(({ mount, path }) => {
      const log = logs.get(mount);
      return log ? { mount, path, log } : [];
    });
  };
  /** The drive that seals, which is the first one for the folder above all. */
  const sealing = (folder: Path): LoggedPlace => {
    const [place] = placesOf(folder);
    if (!place) throw new FileError('not-found', `${folder} does not exist`);
    return place;
  };
  const shown = ({ mount }: Place, paths: readonly Path[]): readonly Path[] =>
    paths.map((path) => mount.outer(path)).filter((path) => path !== undefined);

  return {
    async position(folder, signal) {
      const positions = placesOf(folder).map(
        async (place) => (await rootMark(place, signal)) + (await place.log.position(place.path, signal)),
      );
      return JSON.stringify(await Promise.all(positions));
    },
    async since(folder, position, signal) {
      const places = placesOf(folder);
      const positions: readonly string[] = JSON.parse(position);
      if (positions.length !== places.length) return undefined;
      const all = await Promise.all(
        places.map(async (place, index): Promise<LoggedChanges | undefined> => {
          const { log, path } = place;
          const mark = await rootMark(place, signal);
          const since = positions[index] ?? '';
          const found = since.startsWith(mark)
            ? await log.since(path, since.slice(mark.length), signal)
            : undefined;
          return (
            found && {
              changed: shown(place, found.changed),
              deleted: shown(place, found.deleted),
              position: mark + found.position,
            }
          );
        }),
      );
      const found = all.filter((changes) => changes !== undefined);
      if (found.length < all.length) return undefined;
      return {
        changed: found.flatMap(({ changed }) => changed),
        deleted: found.flatMap(({ deleted }) => deleted),
        position: JSON.stringify(found.map((changes) => changes.position)),
      };
    },
    async unlogged(folder) {
      const revisions = new Map<Path, string>();
      for (const { mount, path, log } of placesOf(folder))
        for (const [inner, rev] of await log.unlogged(path)) {
          const outer = mount.outer(inner);
          if (outer !== undefined) revisions.set(outer, rev);
        }
      return revisions;
    },
    async seal(folder, content) {
      const { log, path } = sealing(folder);
      return await log.seal(path, content);
    },
    async unseal(folder, text) {
      const { log, path } = sealing(folder);
      return await log.unseal(path, text);
    },
  };
}

/** Returns a short text that differs for the different entries that were in the place of a drive's root. */
async function rootMark({ mount }: Place, signal: AbortSignal): Promise<string> {
  const root = await mount.files.stat(mount.inner(mount.at), signal);
  return `${shortHash(`${root?.kind} ${root?.id}`)}.`;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 8);
}

/**
 * The changes that a user with rights by path sees. A position is not valid any more when the rules have changed, because a
 * folder that is no longer hidden has not changed at the service.
 */
export function ruledChangeLog(
  log: ChangeLog,
  rules: readonly FolderRule[],
  rights: FolderRights,
): ChangeLog {
  const start = `${shortHash(JSON.stringify(rules))}.`;
  const isShown = (path: Path) => !rights.isHidden(path);
  return {
    position: async (folder, signal) => start + (await log.position(folder, signal)),
    async since(folder, position, signal) {
      if (!position.startsWith(start)) return undefined;
      const found = await log.since(folder, position.slice(start.length), signal);
      return (
        found && {
          changed: found.changed.filter(isShown),
          deleted: found.deleted.filter(isShown),
          position: start + found.position,
        }
      );
    },
    unlogged: async (folder) => new Map([...(await log.unlogged(folder))].filter(([path]) => isShown(path))),
    seal: (folder, content) => log.seal(folder, content),
    unseal: (folder, text) => log.unseal(folder, text),
  };
}
