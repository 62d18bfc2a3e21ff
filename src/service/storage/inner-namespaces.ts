import { foldName } from '../../util/path.ts';
import { notFound } from './errors.ts';
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
 * not by an id either. `placeOf` is called once for each namespace, and resolves with `undefined` for any other one.
 */
export function withInnerNamespaces(
  storage: Storage,
  placeOf: (namespace: string) => Promise<InnerNamespace | undefined>,
): Storage {
  const views = new Map<string, Promise<View>>();
  function at(namespace: string): Promise<View> {
    const known = views.get(namespace);
    if (known !== undefined) return known;
    const view = viewOf(namespace);
    views.set(namespace, view);
    // The next call tries again.
    view.catch(() => views.delete(namespace));
    return view;
  }
  async function viewOf(namespace: string): Promise<View> {
    const place = await placeOf(namespace);
    return place ? new FolderView(storage, place, namespace) : new WholeView(namespace);
  }
  return {
    ...storage,
    ...reading(storage, at),
    createNamespace: async (namespace, limitBytes) =>
      await storage.createNamespace((await at(namespace)).outer, limitBytes),
    async upload(namespace, commit, ...rest) {
      const view = await at(namespace);
      return view.up(await storage.upload(view.outer, await view.commit(commit), ...rest));
    },
    startSession: async (namespace, ...rest) =>
      await storage.startSession((await at(namespace)).outer, ...rest),
    appendSession: async (namespace, ...rest) =>
      await storage.appendSession((await at(namespace)).outer, ...rest),
    appendSessions: async (namespace, ...rest) =>
      await storage.appendSessions((await at(namespace)).outer, ...rest),
    async finishSession(namespace, place, commit, body) {
      const view = await at(namespace);
      return view.up(await storage.finishSession(view.outer, place, await view.commit(commit), body));
    },
    async finishSessions(namespace, entries) {
      const view = await at(namespace);
      const paths = await view.downAll(entries.map(({ commit }) => commit.path));
      const below = entries.map((entry, index) => ({
        ...entry,
        commit: { ...entry.commit, path: paths[index] ?? NOWHERE },
      }));
      return view.upAll(await storage.finishSessions(view.outer, below));
    },
    async createFolder(namespace, path, autorename) {
      const view = await at(namespace);
      return view.up(await storage.createFolder(view.outer, await view.down(path), autorename));
    },
    async createFolders(namespace, paths, autorename) {
      const view = await at(namespace);
      return view.upAll(await storage.createFolders(view.outer, await view.downAll(paths), autorename));
    },
    async remove(namespace, address, parentRev) {
      const view = await at(namespace);
      return view.up(await storage.remove(view.outer, await view.down(address), parentRev));
    },
    async removeAll(namespace, entries) {
      const view = await at(namespace);
      const addresses = await view.downAll(entries.map(({ address }) => address));
      const below = entries.map((entry, index) => ({ ...entry, address: addresses[index] ?? NOWHERE }));
      return view.upAll(await storage.removeAll(view.outer, below));
    },
    async removeForever(namespace, address, parentRev) {
      const view = await at(namespace);
      await storage.removeForever(view.outer, await view.down(address), parentRev);
    },
    async relocate(namespace, from, to, options) {
      const view = await at(namespace);
      return view.up(await storage.relocate(view.outer, await view.down(from), await view.down(to), options));
    },
    async relocateAll(namespace, entries, options) {
      const view = await at(namespace);
      const below = await view.pairsDown(entries);
      return view.upAll(await storage.relocateAll(view.outer, below, options));
    },
    async relocateTogether(namespace, entries, options) {
      const view = await at(namespace);
      const below = await view.pairsDown(entries);
      const moved = await storage.relocateTogether(view.outer, below, options);
      return moved.map((item) => view.up(item));
    },
    async restore(namespace, path, rev) {
      const view = await at(namespace);
      return view.up(await storage.restore(view.outer, await view.down(path), rev));
    },
  };
}

type Reading =
  | 'stat'
  | 'statAll'
  | 'statWithFolders'
  | 'known'
  | 'countNamed'
  | 'countBelow'
  | 'findNames'
  | 'list'
  | 'listAll'
  | 'latestCursor'
  | 'listContinue'
  | 'read'
  | 'revisions'
  | 'usage';

/** Returns the calls that change nothing. A lookup of one item checks its result instead of its address, in one call. */
function reading(storage: Storage, at: (namespace: string) => Promise<View>): Pick<Storage, Reading> {
  return {
    async stat(namespace, address, includeDeleted) {
      const view = await at(namespace);
      return view.up(await storage.stat(view.outer, view.pathDown(address), includeDeleted));
    },
    async statAll(namespace, addresses) {
      const view = await at(namespace);
      const below = addresses.map((address) => view.pathDown(address));
      return (await storage.statAll(view.outer, below)).map((outcome) => view.outcome(outcome));
    },
    async statWithFolders(namespace, address) {
      const view = await at(namespace);
      const [item, ...folders] = await storage.statWithFolders(view.outer, view.pathDown(address));
      return [view.up(item), ...view.below(folders)];
    },
    known: async (namespace, ids) => await storage.known((await at(namespace)).outer, ids),
    countNamed: async (namespace, ...rest) => await storage.countNamed((await at(namespace)).outer, ...rest),
    async countBelow(namespace, scope, max) {
      const view = await at(namespace);
      return await storage.countBelow(view.outer, await view.scope(scope), max);
    },
    async *findNames(namespace, scope, lookup, filter) {
      const view = await at(namespace);
      const found = storage.findNames(view.outer, await view.scope(scope), lookup, filter);
      for await (const items of found) yield view.below(items);
    },
    async list(owner, scope, limit) {
      const view = await at(owner.namespace);
      return view.page(await storage.list(view.owner(owner), await view.scope(scope), limit));
    },
    async listAll(namespace, address, max) {
      const view = await at(namespace);
      const all = await storage.listAll(view.outer, view.pathDown(address), max);
      if (!all) return undefined;
      const [folder, ...items] = all;
      return [view.up(folder), ...view.below(items)];
    },
    async latestCursor(owner, scope, limit) {
      const view = await at(owner.namespace);
      return await storage.latestCursor(view.owner(owner), await view.scope(scope), limit);
    },
    async listContinue(owner, cursor) {
      const view = await at(owner.namespace);
      return view.page(await storage.listContinue(view.owner(owner), cursor));
    },
    async *read(namespace, ...rest) {
      yield* storage.read((await at(namespace)).outer, ...rest);
    },
    async revisions(namespace, address, options) {
      const view = await at(namespace);
      const found = await storage.revisions(view.outer, await view.down(address), options);
      return { ...found, entries: found.entries.map((file) => view.up(file)) };
    },
    usage: async (namespace) => await storage.usage((await at(namespace)).outer),
  };
}

/** The id of no item. */
const NOWHERE = 'id:';

type Item = Stored | StoredDeletion;

interface Pair {
  readonly from: string;
  readonly to: string;
}

/** A namespace as its callers see it, and its counterpart in the storage. */
abstract class View {
  constructor(readonly outer: string) {}

  /** Returns a path in the outer namespace; ids and revisions unchanged, which may be of items outside. */
  abstract pathDown(address: string): string;
  /** Returns the address in the outer namespace; one of nothing for an item outside, which the storage then refuses. */
  abstract down(address: string): Promise<string>;
  /** Like `down`, for several addresses of existing items, in one call of the storage. */
  abstract downAll(addresses: readonly string[]): Promise<readonly string[]>;
  /** Returns an item with its path in this namespace. Throws `lookup/not_found` for an item outside. */
  abstract up<I extends Item>(item: I): I;
  /** Returns those of the items that are below the root, with their paths in this namespace. */
  abstract below<I extends Item>(items: readonly I[]): readonly I[];
  abstract owner(owner: CursorOwner): CursorOwner;

  page({ entries, ...rest }: StoredPage): StoredPage {
    return { ...rest, entries: this.below(entries) };
  }

  async commit(commit: Commit): Promise<Commit> {
    return { ...commit, path: await this.down(commit.path) };
  }

  async scope<S extends { readonly path: string }>(scope: S): Promise<S> {
    return { ...scope, path: await this.down(scope.path) };
  }

  async pairsDown(pairs: readonly Pair[]): Promise<readonly Pair[]> {
    const from = await this.downAll(pairs.map((pair) => pair.from));
    const to = await this.downAll(pairs.map((pair) => pair.to));
    return pairs.map((_, index) => ({ from: from[index] ?? NOWHERE, to: to[index] ?? NOWHERE }));
  }

  upAll<I extends Item>(outcomes: readonly Outcome<I>[]): readonly Outcome<I>[] {
    return outcomes.map((outcome) => (outcome instanceof StorageError ? outcome : this.up(outcome)));
  }

  /** Returns the outcome of a lookup; `lookup/not_found` for an item outside. */
  outcome<I extends Item>(outcome: Outcome<I>): Outcome<I> {
    if (outcome instanceof StorageError) return outcome;
    const [inside = notFound()] = this.below([outcome]);
    return inside;
  }
}

/** A namespace that the storage has itself. */
class WholeView extends View {
  pathDown(address: string): string {
    return address;
  }

  async down(address: string): Promise<string> {
    return address;
  }

  async downAll(addresses: readonly string[]): Promise<readonly string[]> {
    return addresses;
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

  pathDown(address: string): string {
    if (address === '' || address === '/') return this.#folder;
    return address.startsWith('/') ? this.#folder + address : address;
  }

  async down(address: string): Promise<string> {
    if (isPath(address)) return this.pathDown(address);
    // The storage finds ids and revisions everywhere.
    return (await this.#has(itemIn(address))) ? address : NOWHERE;
  }

  async downAll(addresses: readonly string[]): Promise<readonly string[]> {
    const items = new Set(addresses.filter((one) => !isPath(one)).map(itemIn));
    const found = await this.storage.statAll(this.outer, [...items]);
    const inside = new Set([...items].filter((_, index) => this.#isInside(found[index])));
    return addresses.map((one) => {
      if (isPath(one)) return this.pathDown(one);
      return inside.has(itemIn(one)) ? one : NOWHERE;
    });
  }

  #isInside(outcome: Outcome<Item> | undefined): boolean {
    if (!outcome || outcome instanceof StorageError) return false;
    return outcome.pathLower.startsWith(this.#prefix);
  }

  async #has(item: string): Promise<boolean> {
    try {
      return this.#isInside(await this.storage.stat(this.outer, item, true));
    } catch (error) {
      if (error instanceof StorageError) return false;
      throw error;
    }
  }

  up<I extends Item>(item: I): I {
    const { pathLower, pathDisplay } = item;
    if (!pathLower.startsWith(this.#prefix)) throw notFound();
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

function isPath(address: string): boolean {
  return address === '' || address.startsWith('/');
}

/** Returns the id or revision with which an address begins. */
function itemIn(address: string): string {
  return address.split('/')[0] ?? '';
}

function withoutTop(path: string): string {
  return path.slice(path.indexOf('/', 1));
}
