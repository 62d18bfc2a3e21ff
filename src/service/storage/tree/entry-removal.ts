import type { Transaction } from '../committer.ts';
import { conflict, notFound } from '../errors.ts';
import { numberOf } from '../feed/ticks.ts';
import type { Store } from './entry-writes.ts';
import { malformed, type Place } from './places.ts';
import type { EntryRow } from './tree-rows.ts';

/** Deletes a file or a tree; its history stays. What was there. */
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

/** Deletes what is there, and the history of what is and was there. */
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

/** The place of an address, also of what was deleted; the root stays. */
function placeToRemove({ tree }: Store, ns: number, address: string): Place {
  const place = tree.locate(ns, address, 'lookup', true);
  if (!place) throw malformed('lookup');
  return place;
}

/** `parent_rev` is for files: it must still be the file's. */
function checkRevision(
  { directoryTag }: Store,
  row: EntryRow | undefined,
  parentRev: string | undefined,
): void {
  if (parentRev === undefined) return;
  if (row?.revision !== numberOf(parentRev, directoryTag))
    throw conflict(row?.revision === null ? 'folder' : 'file');
}
