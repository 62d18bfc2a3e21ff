import type { Transaction } from '../committer.ts';
import { conflict, notFound } from '../errors.ts';
import { StorageError } from '../storage.ts';
import { malformed, type Place, sizeChecked } from './names.ts';
import { type EntryRow, keyOf } from './tree-rows.ts';
import { freePlace, kindOf, type Store } from './writes.ts';

/** Files and folders that one move or copy may take along (service-api.md §6.4). */
const ENTRIES_MAX = 10_000;

interface Options {
  readonly copy: boolean;
  readonly autorename: boolean;
}

/** Moves or copies a file or a tree (service-api.md §9.3). Never overwrites. */
export function relocateEntry(
  store: Store,
  transaction: Transaction,
  ns: number,
  from: string,
  to: string,
  options: Options,
): EntryRow {
  return relocate(store, transaction, ns, { from, to }, options, { entries: ENTRIES_MAX });
}

/** Moves or copies one after the other, together no more than one move may take along. */
export function relocateEntries(
  store: Store,
  transaction: Transaction,
  ns: number,
  pairs: readonly { readonly from: string; readonly to: string }[],
  options: Options,
): EntryRow[] {
  const room = { entries: ENTRIES_MAX };
  return pairs.map((pair) => relocate(store, transaction, ns, pair, options, room));
}

/** Takes the entries that it moves from `room`. */
function relocate(
  store: Store,
  transaction: Transaction,
  ns: number,
  { from, to }: { readonly from: string; readonly to: string },
  options: Options,
  room: { entries: number },
): EntryRow {
  const { tree } = store;
  const source = sourceOf(store, ns, from);
  const asked = tree.locate(ns, to, 'write');
  if (!asked) throw malformed('write');
  // The service does not change only the case of a name, and says it did.
  if (!options.copy && asked.key === keyOf(source)) return source;
  const target = targetOf(store, ns, source, asked, options);
  const below = source.revision === null ? tree.entriesBelow(ns, keyOf(source), room.entries) : [];
  room.entries -= 1 + (below?.length ?? 0);
  if (!below || room.entries < 0) throw refused('too_many_files');
  // Their ids go on elsewhere, so nothing of them may stay here.
  if (!options.copy) tree.remove(transaction, source, { forever: false, lazily: false });
  const moved = arrive(store, transaction, source, target, options.copy);
  for (const row of below) arrive(store, transaction, row, under(row, source, target), options.copy);
  transaction.changes.push({ ns, key: target.key, tree: true });
  return moved;
}

/** What is to be moved; failures speak of the `from` side. */
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

/** Where it goes. Checked before anything changes, as a move begins with a removal. */
function targetOf(
  { tree }: Store,
  ns: number,
  source: EntryRow,
  asked: Place,
  { copy, autorename }: Options,
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

/** Puts one entry of the source where it goes; the parents are there or are made. */
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
  return tree.putFile(transaction, row.ns, place, id === undefined ? file : { ...file, id });
}

/** The place of a descendant of `source` once that is `target`. */
function under(row: EntryRow, source: EntryRow, target: Place): Place {
  const parent = target.key + row.parent.slice(keyOf(source).length);
  const names = [...target.names, ...row.path.slice(source.path.length + 1).split('/')];
  return sizeChecked({ parent, nameKey: row.nameKey, key: parent + row.nameKey, names });
}

function refused(
  tag: 'cant_move_folder_into_itself' | 'duplicated_or_nested_paths' | 'too_many_files',
): StorageError {
  return new StorageError({ kind: 'relocation', tag });
}
