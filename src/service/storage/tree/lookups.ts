import { notFound } from '../errors.ts';
import { numberOf } from '../feed/ticks.ts';
import {
  type Outcome,
  StorageError,
  type Stored,
  type StoredDeletion,
  type StoredFolder,
} from '../storage.ts';
import { foldersAbove } from './entry-relocation.ts';
import type { Store } from './entry-writes.ts';
import { malformed, splitKey } from './places.ts';
import { storedDeletion, storedFolder, storedOf, storedRevision } from './tree-rows.ts';

/** See `Storage.stat`. */
export function itemAt(
  store: Store,
  ns: number,
  address: string,
  includeDeleted: boolean,
): Stored | StoredDeletion {
  const { tree, directoryTag } = store;
  if (address.startsWith('rev:')) {
    const number = numberOf(address.slice('rev:'.length), directoryTag);
    const revision = number === undefined ? undefined : tree.findRevision(ns, number);
    if (!revision) throw notFound();
    return storedRevision(revision, directoryTag);
  }
  const place = tree.locate(ns, address, 'lookup', includeDeleted);
  if (!place) throw malformed('lookup');
  const row = tree.find(ns, place);
  if (row) return storedOf(row, directoryTag);
  const deletion = includeDeleted ? tree.findDeletion(ns, place) : undefined;
  if (!deletion) throw notFound();
  return storedDeletion(deletion);
}

/** See `Storage.statAll`. */
export function itemsAt(store: Store, ns: number, addresses: readonly string[]): Outcome<Stored>[] {
  return addresses.map((address) => {
    try {
      return existingAt(store, ns, address);
    } catch (failure) {
      if (failure instanceof StorageError) return failure;
      throw failure;
    }
  });
}

/** See `Storage.statWithFolders`. */
export function itemWithFolders(store: Store, ns: number, address: string): [Stored, ...StoredFolder[]] {
  const item = existingAt(store, ns, address);
  const rows = [...foldersAbove(item.pathLower)].map((key) => store.tree.find(ns, splitKey(key)));
  return [item, ...rows.flatMap((row) => (row ? [storedFolder(row)] : []))];
}

/** See `Storage.listAll`. */
export function allIn(
  store: Store,
  ns: number,
  address: string,
  max: number,
): [StoredFolder, ...Stored[]] | undefined {
  const { tree, directoryTag } = store;
  const folder = existingAt(store, ns, address);
  if (folder.kind === 'file') throw new StorageError({ kind: 'lookup', tag: 'not_folder' });
  const items: Stored[] = [];
  for (const rows of tree.entriesBelow(ns, folder.pathLower)) {
    for (const row of rows) items.push(storedOf(row, directoryTag));
    if (items.length + 1 > max) return undefined;
  }
  return [folder, ...items];
}

function existingAt(store: Store, ns: number, address: string): Stored {
  const item = itemAt(store, ns, address, false);
  if (item.kind === 'deleted') throw notFound();
  return item;
}
