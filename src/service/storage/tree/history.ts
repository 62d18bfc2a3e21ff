import type { Transaction } from '../committer.ts';
import { conflict, notFound } from '../errors.ts';
import { numberOf } from '../feed/ticks.ts';
import { type RevisionPage, StorageError } from '../storage.ts';
import type { Store } from './entry-writes.ts';
import { malformed, type Place, placeOf } from './places.ts';
import { type EntryRow, storedRevision } from './tree-rows.ts';

/** Returns the revisions of a path, or of an id at any path, newest first. Includes deleted files. */
export function revisionsOf(
  store: Store,
  ns: number,
  address: string,
  options: { readonly by: 'path' | 'id'; readonly limit: number; readonly beforeRev?: string },
): RevisionPage {
  const { tree, directoryTag } = store;
  const place = filePlace(store, ns, address);
  const row = tree.find(ns, place);
  const deletion = row ? undefined : tree.findDeletion(ns, place);
  const file = row ?? deletion;
  if (!file) throw notFound();
  if (row?.revision === null || deletion?.wasFolder)
    throw new StorageError({ kind: 'lookup', tag: 'not_file' });
  const of = options.by === 'id' ? { id: file.id } : place;
  const before = beforeNumber(store, ns, options.beforeRev);
  const rows = tree.revisions(ns, of, before, options.limit + 1);
  return {
    deleted: deletion !== undefined,
    ...(deletion && { deletedMs: deletion.deletedMs }),
    entries: rows.slice(0, options.limit).map((revision) => storedRevision(revision, directoryTag)),
    hasMore: rows.length > options.limit,
  };
}

/** Makes an old revision of a path the current one, under a new rev. */
export function restoreRevision(
  store: Store,
  transaction: Transaction,
  ns: number,
  path: string,
  rev: string,
): EntryRow {
  const { tree, directoryTag } = store;
  const place = filePlace(store, ns, path);
  const existing = tree.find(ns, place);
  if (existing?.revision === null) throw conflict('folder');
  const known = existing ?? tree.findDeletion(ns, place);
  const number = numberOf(rev, directoryTag);
  const revision = number === undefined ? undefined : tree.findRevision(ns, number);
  const isOfPath = revision?.parent === place.parent && revision.nameKey === place.nameKey;
  if (!revision || !(isOfPath || revision.id === known?.id))
    throw new StorageError({ kind: 'revision', tag: 'invalid_revision' });
  // A restored file gets the letter case that it had.
  const target = (isOfPath ? placeOf(revision.path, 'lookup') : undefined) ?? place;
  const { content, clientMs } = revision;
  // If the file was moved it still exists under its id; the restored one is then a new file.
  const file = tree.findById(ns, revision.id)
    ? { content, clientMs }
    : { content, clientMs, id: revision.id };
  return tree.putFile(transaction, ns, target, file);
}

/** Returns the place of an address, also of a deleted file. Refuses the root. */
function filePlace({ tree }: Store, ns: number, address: string): Place {
  const place = tree.locate(ns, address, 'lookup', true);
  if (!place) throw malformed('lookup');
  return place;
}

/** Returns the number of `before_rev`; without one, a number above all others. */
function beforeNumber({ tree, directoryTag }: Store, ns: number, beforeRev: string | undefined): number {
  if (beforeRev === undefined) return Number.MAX_SAFE_INTEGER;
  const number = numberOf(beforeRev, directoryTag);
  if (number === undefined || !tree.findRevision(ns, number))
    throw new StorageError({ kind: 'revision', tag: 'invalid_before_rev' });
  return number;
}
