import type { Protection } from '../../state/locks.ts';
import type { RequestState } from '../../state/state.ts';
import { type Path, parentOf } from '../../util/path.ts';
import type { Changes } from '../changes.ts';
import { FileError } from '../errors.ts';
import type { Entry, Files, Listing, NameSearch, Thumbnails } from '../files.ts';
import type { History } from '../history.ts';
import { FolderRights, type FolderRule } from './folder-rights.ts';
import type { DriveRules, ViewedDrive } from './mounts.ts';
import { ruledChangeLog } from './view-change-log.ts';

/**
 * The drive of a user with rights by path. Each method is written out, so that a new one is not forgotten. A hidden path
 * answers as if nothing were there; a change to it is refused whether or not there is something.
 */
export class FolderRules implements DriveRules {
  private readonly rights: FolderRights;

  constructor(private readonly rules: readonly FolderRule[]) {
    this.rights = new FolderRights(rules);
  }

  /** The folders of the rules that the user sees. */
  get places(): readonly { readonly path: Path; readonly isReadOnly: boolean }[] {
    const shown = this.rules.filter(({ path }) => !this.rights.isHidden(path));
    return shown.map(({ path }) => ({ path, isReadOnly: this.rights.isReadOnly(path) }));
  }

  isReadOnly(path: Path): boolean {
    return this.rights.isReadOnly(path);
  }

  limit({ files, history, changes, changeLog, state, catchUp }: ViewedDrive): ViewedDrive {
    return {
      files: ruledFiles(files, this.rights),
      history: ruledHistory(history, this.rights),
      changes: ruledChanges(changes, this.rights),
      changeLog: changeLog && ruledChangeLog(changeLog, this.rules, this.rights),
      state: ruledState(state, this.rights),
      catchUp,
    };
  }
}

type ViewedFiles = ViewedDrive['files'];

function ruledFiles(files: ViewedFiles, rights: FolderRights): ViewedFiles {
  const { shown, listing, requireShown } = reading(rights);
  const { requireOwn, requireOwnTree, requireWritable } = changing(rights);
  const requireShareable = (path: Path) => {
    requireWritable(path);
    if (rights.hidesWithin(path)) throw refused(`${path} cannot be shared: a folder in it has other rights`);
  };
  const links: Pick<
    Files,
    'sharedLink' | 'shareLink' | 'unshareLink' | 'sharedLinks' | 'createLink' | 'changeLink' | 'revokeLink'
  > = {
    // A link to a folder would show the hidden ones in it.
    sharedLink: async (path, signal) =>
      rights.hidesWithin(path) ? undefined : files.sharedLink(path, signal),
    async sharedLinks(path, signal) {
      if (path !== undefined) requireShown(path);
      const all = await files.sharedLinks(path, signal);
      return all.filter((link) => !rights.hidesWithin(link.path));
    },
    async shareLink(path, settings) {
      requireShareable(path);
      return files.shareLink(path, settings);
    },
    async unshareLink(path) {
      requireShareable(path);
      return files.unshareLink(path);
    },
    async createLink(path, settings) {
      requireShown(path);
      requireShareable(path);
      return files.createLink(path, settings);
    },
    async changeLink(path, url, change) {
      requireShown(path);
      requireShareable(path);
      return files.changeLink(path, url, change);
    },
    async revokeLink(path, url) {
      requireShown(path);
      requireShareable(path);
      return files.revokeLink(path, url);
    },
  };
  const finding: NameSearch & Thumbnails = {
    async search(query, cursor, signal) {
      let page = await files.search(query, cursor, signal);
      for (;;) {
        const entries = page.entries.filter(({ path }) => !rights.isHidden(path));
        // A page without any name would look like the end.
        if (entries.length > 0 || page.cursor === undefined) return { ...page, entries };
        page = await files.search(query, page.cursor, signal);
      }
    },
    async thumbnail(path, rev, signal) {
      requireShown(path);
      return files.thumbnail(path, rev, signal);
    },
  };
  return {
    ...links,
    ...finding,
    known: (path) => (rights.isHidden(path) ? undefined : files.known(path)),
    stat: async (path, signal) => (rights.isHidden(path) ? undefined : files.stat(path, signal)),
    statForWrite: async (path, options, signal) =>
      rights.isHidden(path) ? undefined : files.statForWrite(path, options, signal),
    async list(folder, ...how) {
      requireShown(folder);
      return listing(await files.list(folder, ...how));
    },
    async *walk(folder, ...how) {
      requireShown(folder);
      for await (const found of files.walk(folder, ...how)) if (shown(found.folder)) yield listing(found);
    },
    inMemory: (file) => files.inMemory(file),
    read: (file, range, signal) => files.read(file, range, signal),
    async write(path, body, options, signal) {
      requireOwn(path);
      return files.write(path, body, options, signal);
    },
    async keepPlaceholder(path, waitMs) {
      requireOwn(path);
      return files.keepPlaceholder(path, waitMs);
    },
    async commitPlaceholder(path) {
      if (!rights.isHidden(path)) await files.commitPlaceholder(path);
    },
    async createFolder(path) {
      requireOwn(path);
      return files.createFolder(path);
    },
    async remove(path, options) {
      requireOwnTree(path);
      return files.remove(path, options);
    },
    async copy(from, to, options) {
      requireShown(from);
      if (!options.shallow && rights.hidesWithin(from))
        throw refused(`${from} cannot be copied: a folder in it has other rights; copy its parts`);
      requireOwnTree(to);
      return files.copy(from, to, options);
    },
    async move(from, to, options) {
      requireShown(from);
      requireOwnTree(from);
      requireOwnTree(to);
      return files.move(from, to, options);
    },
    async setModified(path, modifiedMs) {
      requireShown(path);
      requireWritable(path);
      return files.setModified(path, modifiedMs);
    },
    freeSpace: (signal, path) => files.freeSpace(signal, path),
  };
}

function ruledHistory(history: History, rights: FolderRights): History {
  const { requireShown } = reading(rights);
  const { requireOwn, requireOwnTree } = changing(rights);
  return {
    async versions(path, signal) {
      requireShown(path);
      return history.versions(path, signal);
    },
    async version(path, rev, signal) {
      requireShown(path);
      return history.version(path, rev, signal);
    },
    read: (file, range, signal) => history.read(file, range, signal),
    async restore(path, rev) {
      requireShown(path, `the storage service has no such version of ${path}`);
      requireOwn(path);
      return history.restore(path, rev);
    },
    async trash(folder, signal) {
      requireShown(folder);
      const { items, leftOut } = await history.trash(folder, signal);
      return { items: items.filter(({ path }) => !rights.isHidden(path)), leftOut };
    },
    async undelete(path) {
      requireShown(path, `nothing can be restored at ${path}`);
      requireOwnTree(path);
      return history.undelete(path);
    },
  };
}

function ruledChanges(changes: Changes, rights: FolderRights): Changes {
  return {
    follow: (listener) =>
      changes.follow((change) => {
        // The pending writes are those of all users.
        if (change.kind === 'writes') return;
        if (change.kind === 'locks' || !rights.isHidden(change.path)) listener(change);
      }),
  };
}

function ruledState({ locks, properties }: RequestState, rights: FolderRights): RequestState {
  const visible = <Rooted extends { readonly root: Path }>(all: readonly Rooted[]) =>
    all.filter(({ root }) => !rights.isHidden(root));
  return {
    properties,
    locks: {
      ...locks,
      async create(nowMs, wanted) {
        const { root, depth } = wanted;
        const isTree = depth === 'infinity' && rights.hasLimitWithin(root);
        if (rights.at(root) !== 'read-write' || isTree)
          throw new FileError('forbidden', 'your rights here do not allow this lock');
        return locks.create(nowMs, wanted);
      },
      async claim(nowMs, claims) {
        const claimed = await locks.claim(nowMs, claims);
        const protections = claimed.protections.map(
          ({ covering, within }): Protection => ({ covering: visible(covering), within: visible(within) }),
        );
        return { ...claimed, protections };
      },
      covering: async (nowMs, path) =>
        rights.isHidden(path) ? [] : visible(await locks.covering(nowMs, path)),
      within: async (nowMs, path) => visible(await locks.within(nowMs, path)),
    },
  };
}

function reading(rights: FolderRights) {
  /** The same listing is shown as the same object, so that answers made of it last. */
  const listings = new WeakMap<Listing, Listing>();
  const shown = ({ path }: Entry) => !rights.isHidden(path);
  return {
    shown,
    listing(found: Listing): Listing {
      const known = listings.get(found);
      if (known) return known;
      const isWhole = found.children.every(shown);
      const own = isWhole ? found : { ...found, children: found.children.filter(shown) };
      listings.set(found, own);
      return own;
    },
    /** `reason`: what the drive says where nothing is. */
    requireShown(path: Path, reason = `${path} is not there`): void {
      if (rights.isHidden(path)) throw new FileError('not-found', reason);
    },
  };
}

function changing(rights: FolderRights) {
  const requireOwn = (path: Path) => {
    const parent = parentOf(path);
    if (rights.isHidden(parent))
      throw new FileError('parent-missing', `cannot create ${path}: ${parent} does not exist`);
    if (!rights.isOwn(path))
      throw refused(`${path} cannot be created, replaced, moved or deleted by you; choose another name`);
  };
  return {
    requireOwn,
    /** For a change that removes or replaces everything below `path`. */
    requireOwnTree(path: Path): void {
      requireOwn(path);
      if (rights.hasLimitWithin(path))
        throw refused(`${path} cannot be replaced, moved or deleted: a folder in it has other rights`);
    },
    requireWritable(path: Path): void {
      if (rights.at(path) !== 'read-write') throw refused(`${path} cannot be changed by you`);
    },
  };
}

function refused(reason: string): FileError {
  return new FileError('forbidden', reason);
}
