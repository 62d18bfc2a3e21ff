import type { Transaction } from '../committer.ts';
import { conflict, notFound } from '../errors.ts';
import { StorageError } from '../storage.ts';
import { freePlace, kindOf, type Store } from './entry-writes.ts';
import { malformed, type Place, sizeChecked } from './places.ts';
import { type EntryRow, keyOf } from './tree-rows.ts';

/** Maximum number of files and folders that one move or copy includes (service-api.md §6.4). */
export const ENTRIES_MAX = 10_000;

/** Pieces of `Tree.entriesBelow` that may be read without a pause. */
const PIECES_MAX = 2;

export interface RelocationOptions {
  readonly copy: boolean;
  readonly autorename: boolean;
}

/** The source and target addresses of a move or copy. */
export interface Pair {
  readonly from: string;
  readonly to: string;
}

/** The entry to move or copy, and its target; `undefined` when nothing changes. */
export interface Relocation {
  readonly source: EntryRow;
  readonly target: Place | undefined;
}

/** Moves or copies a file or a tree (service-api.md §9.3). Never overwrites. */
export function relocateEntry(
  store: Store,
  transaction: Transaction,
  ns: number,
  pair: Pair,
  options: RelocationOptions,
): EntryRow {
  const { source, target } = planned(store, ns, pair, options);
  if (!target) return source;
  const below = source.revision === null ? [...store.tree.entriesBelow(ns, keyOf(source))].flat() : [];
  if (!options.copy) store.tree.remove(transaction, source, { forever: false, moved: true });
  const moved = arrive(store, transaction, source, target, options.copy);
  for (const row of below) arrive(store, transaction, row, under(row, source, target), options.copy);
  transaction.changes.push({ ns, key: target.key, tree: true });
  return moved;
}

/**
 * Returns whether the pairs together include more than `max` files and folders, or so many rows of earlier removals
 * that counting them takes long.
 */
export function isLarge(store: Store, ns: number, pairs: readonly Pair[], max: number): boolean {
  let entries = pairs.length;
  let pieces = 0;
  for (const { from } of pairs) {
    if (entries > max) return true;
    const place = readable(() => store.tree.locate(ns, from, 'lookup'));
    const source = place && store.tree.find(ns, place);
    if (source?.revision !== null) continue;
    for (const rows of store.tree.entriesBelow(ns, keyOf(source))) {
      entries += rows.length;
      if (entries > max || ++pieces > PIECES_MAX) return true;
    }
  }
  return entries > max;
}

/** Returns what a pair requires. Throws its refusals before anything changes. */
export function planned(
  store: Store,
  ns: number,
  { from, to }: Pair,
  options: RelocationOptions,
): Relocation {
  const source = sourceOf(store, ns, from);
  const asked = store.tree.locate(ns, to, 'write');
  if (!asked) throw malformed('write');
  // Like the real service, reports success for a move that changes only the case of a name, and changes nothing.
  if (!options.copy && asked.key === keyOf(source)) return { source, target: undefined };
  return { source, target: targetOf(store, ns, source, asked, options) };
}

/** Returns the entry to move or copy. Its refusals concern the `from` side. */
function sourceOf({ tree }: Store, ns: number, from: string): EntryRow {
  try {
    const place = tree.locate(ns, from, 'lookup');
    if (!place) throw malformed('lookup');
    const source = tree.find(ns, place);
    if (!source) throw notFound();
    return source;
  } catch (failure) {
    throw failure instanceof StorageError ? new StorageError(failure.refusal, 'from') : failure;
  }
}

/** Returns the target. Checked before anything changes, because a move begins with a removal. */
function targetOf(
  { tree }: Store,
  ns: number,
  source: EntryRow,
  asked: Place,
  { copy, autorename }: RelocationOptions,
): Place {
  const isFolder = source.revision === null;
  const isInside = asked.parent.startsWith(`${keyOf(source)}/`);
  if (!isFolder && isInside) throw conflict('file_ancestor');
  if (isInside) throw refused(copy ? 'duplicated_or_nested_paths' : 'cant_move_folder_into_itself');
  const existing = tree.find(ns, asked);
  if (!existing) return asked;
  const taken = conflict(kindOf(existing));
  if (!autorename) throw taken;
  return freePlace(tree, ns, asked, isFolder ? 'folder' : 'file', taken);
}

/** Writes one entry of the source at its target, after its parents. */
function arrive(
  { tree }: Store,
  transaction: Transaction,
  row: EntryRow,
  place: Place,
  copy: boolean,
): EntryRow {
  const id = copy ? undefined : row.id;
  if (row.content === null || row.clientMs === null) return tree.putFolder(transaction, row.ns, place, id);
  const file = { content: row.content, clientMs: row.clientMs };
  return tree.putFile(transaction, row.ns, place, id === undefined ? file : { ...file, id, moved: true });
}

/** Returns the new place of a descendant of `source`. */
export function under(row: EntryRow, source: EntryRow, target: Place): Place {
  const parent = target.key + row.parent.slice(keyOf(source).length);
  const names = [...target.names, ...row.path.slice(source.path.length + 1).split('/')];
  return sizeChecked({ parent, nameKey: row.nameKey, key: parent + row.nameKey, names });
}

/**
 * Returns whether one of several moves or copies changes an entry that another one reads or changes, or an entry below
 * it.
 */
export function areDependent(pairs: readonly KeyPair[], { copy }: RelocationOptions): boolean {
  const sources = pairs.map(({ source }) => source);
  const targets = pairs.flatMap(({ source, target }) =>
    target && (copy || target !== source) ? [target] : [],
  );
  const changed = copy ? targets : [...sources, ...targets];
  const all = new Set(changed);
  if (all.size < changed.length || changed.some((key) => isBelow(key, all))) return true;
  if (!copy) return false;
  const read = new Set(sources);
  return targets.some((key) => isAtOrBelow(key, read)) || sources.some((key) => isBelow(key, all));
}

/** Keys of a source and of its target. */
interface KeyPair {
  readonly source: string;
  readonly target: string | undefined;
}

/** Returns the keys that the pairs name, without addresses that name nothing. */
export function keysAsked({ tree }: Store, ns: number, pairs: readonly Pair[]): KeyPair[] {
  return pairs.flatMap(({ from, to }) => {
    const source = readable(() => tree.locate(ns, from, 'lookup'))?.key;
    return source === undefined
      ? []
      : [{ source, target: readable(() => tree.locate(ns, to, 'write'))?.key }];
  });
}

export function isAtOrBelow(key: string, places: ReadonlySet<string>): boolean {
  return places.has(key) || isBelow(key, places);
}

function isBelow(key: string, places: ReadonlySet<string>): boolean {
  for (const folder of foldersAbove(key)) if (places.has(folder)) return true;
  return false;
}

/** Yields the keys of the folders above a key, except the root. */
export function* foldersAbove(key: string): Generator<string, void, undefined> {
  for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) yield key.slice(0, end);
}

export function refused(
  tag: 'cant_move_folder_into_itself' | 'duplicated_or_nested_paths' | 'too_many_files',
): StorageError {
  return new StorageError({ kind: 'relocation', tag });
}

/** Returns the value of `look`, or `undefined` when it is refused. */
function readable<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (failure) {
    if (failure instanceof StorageError) return undefined;
    throw failure;
  }
}
