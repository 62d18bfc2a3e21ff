import type { PendingWrite } from '../../state/journal.ts';
import { foldName, nameOf } from '../../util/path.ts';
import type { Entry, FileEntry, Listing } from '../files.ts';

/** Begins what a new file is called by until the service has given it an id. */
const NEW_ID = 'pending:';

export function newFileId(unique: string): string {
  return `${NEW_ID}${unique}`;
}

/** Whether the service has never heard of the file with this id. */
export function isNewId(id: string): boolean {
  return id.startsWith(NEW_ID);
}

/** A pending write as it is shown: all that a client compares is as it will be when the write has landed. */
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
 * The entries of the tree below, as they are shown where writes are journaled. The service gives a file its
 * revision only when it has it; so that no entity tag changes when that happens, the beginning of the content hash
 * stands in for the revision: it is known from the first moment, and no less exact.
 */
export class ShownEntries {
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

  /** What the service says of an entry that was made by `of`. */
  original(shown: FileEntry): FileEntry | undefined {
    return this.#originals.get(shown);
  }

  /** With `pending` in place of what lies below them. The same again is the same object. */
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

/** The tag by which an entry of the tree below is shown. */
export function tagOf({ contentHash, rev }: FileEntry): string {
  return contentHash === undefined ? rev : tagFor(contentHash);
}

/** 128 bits: longer tags do not fit into the `If` headers of clients that reckon with short ones (litmus 0.13: 200 bytes). */
const TAG_LENGTH = 32;

export function tagFor(contentHash: string): string {
  return contentHash.slice(0, TAG_LENGTH);
}
