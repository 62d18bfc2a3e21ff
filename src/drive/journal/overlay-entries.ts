import type { PendingWrite } from '../../state/journal.ts';
import { foldName, nameOf } from '../../util/path.ts';
import type { Entry, FileEntry, Listing } from '../files.ts';

/** Prefix of the ids of new files until the service gives them theirs. */
const NEW_ID = 'pending:';

export function newFileId(unique: string): string {
  return `${NEW_ID}${unique}`;
}

/** Whether the file with this id has not landed yet. */
export function isNewId(id: string): boolean {
  return id.startsWith(NEW_ID);
}

/** Returns a pending write as clients see it: everything that they compare stays the same when the write lands. */
export function pendingEntry(write: PendingWrite): FileEntry {
  const { fileId: id, path, sizeBytes, contentHash, modifiedMs, acceptedMs } = write;
  const times = { modifiedMs, committedMs: acceptedMs };
  return {
    kind: 'file',
    id,
    path,
    name: nameOf(path),
    rev: tagFor(contentHash),
    sizeBytes,
    contentHash,
    ...times,
  };
}

/**
 * The entries of the tree below as clients of a journaled drive see them. The service assigns a revision only when a
 * file lands. So that entity tags do not change then, the beginning of the content hash replaces the revision: it is
 * known at once, and as exact.
 */
export class OverlayEntries {
  readonly #originals = new WeakMap<FileEntry, FileEntry>();
  readonly #listings = new WeakMap<Listing, { pending: readonly FileEntry[]; listing: Listing }>();

  of(entry: FileEntry): FileEntry;
  of(entry: Entry): Entry;
  of(entry: Entry): Entry {
    if (entry.kind === 'folder' || entry.contentHash === undefined) return entry;
    const shown: FileEntry = { ...entry, rev: tagFor(entry.contentHash) };
    this.#originals.set(shown, entry);
    return shown;
  }

  /** Returns the service's entry for one that was made by `of`. */
  original(shown: FileEntry): FileEntry | undefined {
    return this.#originals.get(shown);
  }

  /** Returns `base` with `pending` over it: the same object for the same arguments. */
  listing(base: Listing, pending: readonly FileEntry[]): Listing {
    const known = this.#listings.get(base);
    if (known && known.pending === pending) return known.listing;
    const byName = new Map(pending.map((entry) => [foldName(entry.name), entry]));
    const children: Entry[] = base.children.map((child) => {
      const name = foldName(child.name);
      const above = byName.get(name);
      byName.delete(name);
      return above ?? this.of(child);
    });
    const listing = { folder: base.folder, children: [...children, ...byName.values()] };
    this.#listings.set(base, { pending, listing });
    return listing;
  }
}

/** Returns the tag of an entry of the tree below as clients see it. */
export function tagOf({ contentHash, rev }: FileEntry): string {
  return contentHash === undefined ? rev : tagFor(contentHash);
}

/** Length of a tag (128 bits): longer ones overflow the `If` headers of some clients (litmus 0.13: 200 bytes). */
const TAG_LENGTH = 32;

export function tagFor(contentHash: string): string {
  return contentHash.slice(0, TAG_LENGTH);
}
