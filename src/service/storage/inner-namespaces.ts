import { foldName } from '../../util/path.ts';
import {
  type Commit,
  type CursorOwner,
  type Outcome,
  type Storage,
  StorageError,
  type Stored,
  type StoredDeletion,
  type StoredPage,
} from './storage.ts';

/** The place of a namespace that is a folder of another one, as a member's home is a folder of the team's space. */
export interface InnerNamespace {
  /** The namespace that contains it. */
  readonly outer: string;
  /** The folder at the top of the outer namespace, like `/Ann`. */
  readonly folder: string;
}

/**
 * Returns the storage with such namespaces: a call in one works on the folder of the outer namespace, with paths that
 * begin there. Both show the same items with the same ids and revisions. Nothing outside of the folder can be reached,
 * not by an id either. `placeOf` is called once for each namespace, and returns `undefined` for any other one.
 */
export function withInnerNamespaces(
  storage: Storage,
  placeOf: (namespace: string) => InnerNamespace | undefined,
): Storage {
  const views = new Map<string, View>();
  function at(namespace: string): View {
    const known = views.get(namespace);
    if (known) return known;
    const place = placeOf(namespace);
    const view = place ? new FolderView(storage, place, namespace) : new WholeView(namespace);
    views.set(namespace, view);
    return view;
  }
  return {
    ...storage,
    createNamespace: (namespace, limitBytes) => storage.createNamespace(at(namespace).outer, limitBytes),
    stat(namespace, address, includeDeleted) {
      const view = at(namespace);
      return view.up(storage.stat(view.outer, view.down(address), includeDeleted));
    },
    isKnown: (namespace, id) => storage.isKnown(at(namespace).outer, id),
    countNamed: (namespace, ...rest) => storage.countNamed(at(namespace).outer, ...rest),
    countBelow(namespace, scope, max) {
      const view = at(namespace);
      return storage.countBelow(view.outer, { ...scope, path: view.down(scope.path) }, max);
    },
    *findNames(namespace, scope, lookup, filter) {
      const view = at(namespace);
      const below = { ...scope, path: view.down(scope.path) };
      for (const found of storage.findNames(view.outer, below, lookup, filter)) yield view.below(found);
    },
    list(owner, scope, limit) {
      const view = at(owner.namespace);
      const below = { ...scope, path: view.down(scope.path) };
      return view.page(storage.list(view.owner(owner), below, limit));
    },
    latestCursor(owner, scope, limit) {
      const view = at(owner.namespace);
      return storage.latestCursor(view.owner(owner), { ...scope, path: view.down(scope.path) }, limit);
    },
    listContinue(owner, cursor) {
      const view = at(owner.namespace);
      return view.page(storage.listContinue(view.owner(owner), cursor));
    },
    async upload(namespace, commit, ...rest) {
      const view = at(namespace);
      return view.up(await storage.upload(view.outer, view.commit(commit), ...rest));
    },
    startSession: (namespace, ...rest) => storage.startSession(at(namespace).outer, ...rest),
    appendSession: (namespace, ...rest) => storage.appendSession(at(namespace).outer, ...rest),
    appendSessions: (namespace, ...rest) => storage.appendSessions(at(namespace).outer, ...rest),
    async finishSession(namespace, place, commit, body) {
      const view = at(namespace);
      return view.up(await storage.finishSession(view.outer, place, view.commit(commit), body));
    },
    async finishSessions(namespace, entries) {
      const view = at(namespace);
      const below = entries.map((entry) => ({ ...entry, commit: view.commit(entry.commit) }));
      return view.upAll(await storage.finishSessions(view.outer, below));
    },
    async createFolder(namespace, path, autorename) {
      const view = at(namespace);
      return view.up(await storage.createFolder(view.outer, view.down(path), autorename));
    },
    async createFolders(namespace, paths, autorename) {
      const view = at(namespace);
      const below = paths.map((path) => view.down(path));
      return view.upAll(await storage.createFolders(view.outer, below, autorename));
    },
    async remove(namespace, address, parentRev) {
      const view = at(namespace);
      return view.up(await storage.remove(view.outer, view.down(address), parentRev));
    },
    async removeAll(namespace, entries) {
      const view = at(namespace);
      const below = entries.map((entry) => ({ ...entry, address: view.down(entry.address) }));
      return view.upAll(await storage.removeAll(view.outer, below));
    },
    async removeForever(namespace, address, parentRev) {
      const view = at(namespace);
      await storage.removeForever(view.outer, view.down(address), parentRev);
    },
    async relocate(namespace, from, to, options) {
      const view = at(namespace);
      return view.up(await storage.relocate(view.outer, view.down(from), view.down(to), options));
    },
    async relocateAll(namespace, entries, options) {
      const view = at(namespace);
      return view.upAll(await storage.relocateAll(view.outer, entries.map(view.pair), options));
    },
    async relocateTogether(namespace, entries, options) {
      const view = at(namespace);
      const moved = await storage.relocateTogether(view.outer, entries.map(view.pair), options);
      return moved.map((item) => view.up(item));
    },
    revisions(namespace, address, options) {
      const view = at(namespace);
      const found = storage.revisions(view.outer, view.down(address), options);
      return { ...found, entries: found.entries.map((file) => view.up(file)) };
    },
    async restore(namespace, path, rev) {
      const view = at(namespace);
      return view.up(await storage.restore(view.outer, view.down(path), rev));
    },
    usage: (namespace) => storage.usage(at(namespace).outer),
  };
}

type Item = Stored | StoredDeletion;

/** A namespace as its callers see it, and its counterpart in the storage. */
abstract class View {
  constructor(readonly outer: string) {}

  /** Returns the address in the outer namespace; one of nothing for an item outside, which the storage then refuses. */
  abstract down(address: string): string;
  /** Returns an item with its path in this namespace. Throws `lookup/not_found` for an item outside. */
  abstract up<I extends Item>(item: I): I;
  /** Returns those of the items that are below the root, with their paths in this namespace. */
  abstract below<I extends Item>(items: readonly I[]): readonly I[];
  abstract owner(owner: CursorOwner): CursorOwner;

  page({ entries, ...rest }: StoredPage): StoredPage {
    return { ...rest, entries: this.below(entries) };
  }

  commit(commit: Commit): Commit {
    return { ...commit, path: this.down(commit.path) };
  }

  readonly pair = ({ from, to }: { readonly from: string; readonly to: string }) => ({
    from: this.down(from),
    to: this.down(to),
  });

  upAll<I extends Item>(outcomes: readonly Outcome<I>[]): readonly Outcome<I>[] {
    return outcomes.map((outcome) => (outcome instanceof StorageError ? outcome : this.up(outcome)));
  }
}

/** A namespace that the storage has itself. */
class WholeView extends View {
  down(address: string): string {
    return address;
  }

  up<I extends Item>(item: I): I {
    return item;
  }

  below<I extends Item>(items: readonly I[]): readonly I[] {
    return items;
  }

  owner(owner: CursorOwner): CursorOwner {
    return owner;
  }
}

/** The id of no item. */
const NOWHERE = 'id:';

class FolderView extends View {
  readonly #folder: string;
  readonly #prefix: string;

  constructor(
    private readonly storage: Storage,
    { outer, folder }: InnerNamespace,
    private readonly namespace: string,
  ) {
    super(outer);
    this.#folder = folder;
    this.#prefix = `/${foldName(folder.slice(1))}/`;
  }

  down(address: string): string {
    if (address === '' || address === '/') return this.#folder;
    if (address.startsWith('/')) return this.#folder + address;
    // The storage finds ids and revisions everywhere.
    const [item = ''] = address.split('/');
    return this.#has(item) ? address : NOWHERE;
  }

  #has(item: string): boolean {
    try {
      return this.storage.stat(this.outer, item, true).pathLower.startsWith(this.#prefix);
    } catch (error) {
      if (error instanceof StorageError) return false;
      throw error;
    }
  }

  up<I extends Item>(item: I): I {
    const { pathLower, pathDisplay } = item;
    if (!pathLower.startsWith(this.#prefix)) throw new StorageError({ kind: 'lookup', tag: 'not_found' });
    return { ...item, pathLower: withoutTop(pathLower), pathDisplay: withoutTop(pathDisplay) };
  }

  below<I extends Item>(items: readonly I[]): readonly I[] {
    return items.flatMap((item) => (item.pathLower.startsWith(this.#prefix) ? [this.up(item)] : []));
  }

  /** Returns an owner whose cursors work only in this namespace. */
  owner({ account, app }: CursorOwner): CursorOwner {
    return { namespace: this.outer, account, app: `${app} ${this.namespace}` };
  }
}

function withoutTop(path: string): string {
  return path.slice(path.indexOf('/', 1));
}
