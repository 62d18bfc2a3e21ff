import type { RequestState } from '../../state/state.ts';
import { isWithin, type Path } from '../../util/path.ts';
import type { Changes, DriveChange } from '../changes.ts';
import type { ChangeLog, Files, NameSearch, Thumbnails } from '../files.ts';
import type { Deleted, History } from '../history.ts';
import { type Mount, type MountedRoot, Mounts } from './mounts.ts';
import { viewChangeLog } from './view-change-log.ts';
import { viewFiles } from './view-files.ts';
import { viewState } from './view-state.ts';

/** A user's drives as one. */
export interface DriveView {
  readonly files: Files & NameSearch & Thumbnails;
  readonly history: History;
  readonly changes: Changes;
  readonly changeLog: ChangeLog | undefined;
  readonly state: RequestState;
  readonly catchUp: (() => Promise<void>) | undefined;
  readonly isReadOnly: ((path: Path) => boolean) | undefined;
  /** Releases the drives, which would keep the view as long as they last. It can still be used, but remembers less. */
  unfollow(): void;
}

/**
 * Shows folders of drives as one drive: one of them as its root, or several as folders at the top. Paths and ids are
 * translated on the way, so that each drive keeps its own state, which all its users share.
 */
export function createDriveView(mounted: readonly Mount[]): DriveView {
  const mounts = new Mounts(mounted);
  const isReadOnly = (path: Path) => {
    const place = mounts.find(path);
    if (place) return place.mount.isReadOnlyAt(place.path);
    return mounts.all.every((mount) => mount.isReadOnly);
  };
  return {
    files: viewFiles(mounts),
    history: viewHistory(mounts),
    changes: viewChanges(mounts),
    changeLog: viewChangeLog(mounts),
    state: viewState(mounts),
    catchUp: catchUpOf(mounts),
    isReadOnly: mounts.all.some(({ hasReadOnly }) => hasReadOnly) ? isReadOnly : undefined,
    unfollow() {
      for (const mount of mounts.all) mount.unfollow();
    },
  };
}

function catchUpOf(mounts: Mounts): (() => Promise<void>) | undefined {
  const all = new Set(mounts.all.flatMap(({ drive }) => drive.catchUp ?? []));
  if (all.size === 0) return undefined;
  return async () => {
    await Promise.all([...all].map((catchUp) => catchUp()));
  };
}

/** The changes of the entries that the user sees. */
function viewChanges(mounts: Mounts): Changes {
  const shown = (mount: MountedRoot, change: DriveChange): DriveChange | undefined => {
    // A view has no list of pending writes, and must not tell when others write outside of it.
    if (change.kind === 'writes') return undefined;
    if (change.kind === 'locks') return change;
    const path = mount.outer(change.path);
    if (path !== undefined) return { ...change, path };
    const isAbove = change.isTree && isWithin(mount.inner(mount.at), change.path);
    return isAbove ? { ...change, path: mount.at } : undefined;
  };
  return {
    follow(listener) {
      const ends = mounts.all.map((mount) =>
        mount.drive.changes.follow((change) => {
          const own = shown(mount, change);
          if (own) listener(own);
        }),
      );
      return () => {
        for (const end of ends) end();
      };
    },
  };
}

/** The former versions and the trash of the drives. */
function viewHistory(mounts: Mounts): History {
  return {
    async versions(path, signal) {
      const { mount, path: inner } = mounts.place(path);
      const versions = await mount.history.versions(inner, signal);
      // A version may have been at another path, even outside the root; only its content is shown.
      return { ...versions, files: versions.files.map((file) => mount.shownAt(file, path)) };
    },
    async version(path, rev, signal) {
      const { mount, path: inner } = mounts.place(path);
      return mount.shownAt(await mount.history.version(inner, rev, signal), path);
    },
    read(file, range, signal) {
      const { mount, file: original } = mounts.original(file);
      return mount.history.read(original, range, signal);
    },
    async restore(path, rev) {
      const { mount, path: inner } = mounts.place(path);
      return mount.shownAt(await mount.history.restore(inner, rev), path);
    },
    async trash(folder, signal) {
      const place = mounts.find(folder);
      if (!place) return { items: [], leftOut: 0 };
      const { mount, path } = place;
      const { items, leftOut } = await mount.history.trash(path, signal);
      const shown = items.map((item): Deleted => {
        const outer = mount.outer(item.path) ?? mount.at;
        return { ...item, path: outer, file: item.file && mount.shownAt(item.file, outer) };
      });
      return { items: shown, leftOut };
    },
    async undelete(path) {
      const { mount, path: inner } = mounts.place(path);
      await mount.history.undelete(inner);
    },
  };
}
