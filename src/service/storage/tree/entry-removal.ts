import type { Transaction } from '../committer.ts';
import { conflict, notFound } from '../errors.ts';
import { numberOf } from '../feed/ticks.ts';
import type { Store } from './entry-writes.ts';
import { malformed, type Place } from './places.ts';
import type { EntryRow } from './tree-rows.ts';

/** Deletes a file or a tree, keeps its history, and returns its last entry. */
export function removeEntry(
  store: Store,
  transaction: Transaction,
  ns: number,
  address: string,
  parentRev: string | undefined,
): EntryRow {
  const row = store.tree.find(ns, placeToRemove(store, ns, address));
  if (!row) throw notFound();
  checkRevision(store, row, parentRev);
  store.tree.remove(transaction, row, { forever: false, moved: false });
  return row;
}

/** Deletes a file or a tree with all history of its path. */
export function removeEntryForever(
  store: Store,
  transaction: Transaction,
  ns: number,
  address: string,
  parentRev: string | undefined,
): void {
  const { tree, purge } = store;
  const place = placeToRemove(store, ns, address);
  const row = tree.find(ns, place);
  if (!row && !tree.findDeletion(ns, place)) throw notFound();
  checkRevision(store, row, parentRev);
  if (row) tree.remove(transaction, row, { forever: true, moved: false });
  else tree.forget(transaction, ns, place);
  purge.step(transaction);
}

/** Returns the place of an address, also of a deleted entry. Refuses the root. */
function placeToRemove({ tree }: Store, ns: number, address: string): Place {
  const place = tree.locate(ns, address, 'lookup', true);
  if (!place) throw malformed('lookup');
  return place;
}

/** Throws a conflict unless `parentRev`, which is for files, is still the file's revision. */
function checkRevision(
  { directoryTag }: Store,
  row: EntryRow | undefined,
  parentRev: string | undefined,
): void {
  if (parentRev === undefined) return;
  const wanted = numberOf(parentRev, directoryTag);
  if (wanted === undefined || row?.revision !== wanted)
    throw conflict(row?.revision === null ? 'folder' : 'file');
}
