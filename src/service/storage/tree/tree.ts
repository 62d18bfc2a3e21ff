import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Contents } from '../blocks/contents.ts';
import type { Transaction } from '../committer.ts';
import { conflict, notFound } from '../errors.ts';
import type { NameIndex } from './name-index.ts';
import { malformed, type Place, parentOf, placeOf } from './places.ts';
import type { TreeRemovals } from './tree-removals.ts';
import {
  below,
  type DeletionRow,
  type EntryRow,
  keyOf,
  type RevisionRow,
  treeStatements,
} from './tree-rows.ts';

/** Entries read at once. */
const BELOW_ROWS = 500;

/** A file's content, and the properties that a commit sets. */
export interface NewFile {
  readonly content: number;
  readonly clientMs: number;
  /** Id of an existing file: overwriting, moving and restoring keep it. */
  readonly id?: string;
  /** Whether the file was moved: it is already counted as a file. */
  readonly moved?: boolean;
}

interface NewEntry {
  readonly path: string;
  readonly id: string;
  readonly seq: number;
  readonly revision: number | null;
}

/** Target of an entry of a large move or copy, and its number. */
export interface Arrival {
  readonly place: Place;
  readonly path: string;
  readonly seq: number;
  readonly copy: boolean;
}

/**
 * The live tree of every namespace, the deletions, and the revisions. Methods that take a `Transaction` change them,
 * and only inside it.
 */
export class Tree {
  readonly #sql: ReturnType<typeof treeStatements>;

  constructor(
    database: SqliteDatabase,
    private readonly contents: Contents,
    private readonly names: NameIndex,
    private readonly removals: TreeRemovals,
    private readonly mintId: () => string,
  ) {
    this.#sql = treeStatements(database);
  }

  /** Returns the live entry at a place. */
  find(ns: number, place: { readonly parent: string; readonly nameKey: string }): EntryRow | undefined {
    return this.#live(this.#sql.find.get(ns, place.parent, place.nameKey));
  }

  /** Returns the live entry with an id, if it is in this namespace: ids are unique over all namespaces. */
  findById(ns: number, id: string): EntryRow | undefined {
    return this.#sql.findById.all(id).find((row) => row.ns === ns && this.#live(row));
  }

  /** Returns the deletion at a place, unless it was removed permanently. */
  findDeletion(
    ns: number,
    place: { readonly parent: string; readonly nameKey: string },
  ): DeletionRow | undefined {
    const row = this.#sql.findDeletion.get(ns, place.parent, place.nameKey);
    if (row) return this.removals.isDeletionForgotten(row) ? undefined : row;
    return this.#taken(this.#sql.find.get(ns, place.parent, place.nameKey));
  }

  /** Returns the last deletion of an id that is not live, unless it was removed permanently. */
  findDeletionById(ns: number, id: string): DeletionRow | undefined {
    const [left] = this.#sql.findById.all(id);
    const row = this.#taken(left) ?? this.#sql.findDeletionById.get(id);
    return row?.ns === ns && !this.removals.isDeletionForgotten(row) ? row : undefined;
  }

  /** Returns whether an id is live or can be restored. */
  isKnown(ns: number, id: string): boolean {
    const isKept = this.findById(ns, id) ?? this.findDeletionById(ns, id);
    return isKept !== undefined || this.revisions(ns, { id }, Number.MAX_SAFE_INTEGER, 1).length > 0;
  }

  /** Returns a revision by its number, also one that was removed permanently, while its row exists. */
  revision(ns: number, number: number): RevisionRow | undefined {
    return this.#sql.findRevision.get(ns, number);
  }

  /** Returns a revision of this namespace. */
  findRevision(ns: number, number: number): RevisionRow | undefined {
    const row = this.revision(ns, number);
    return row && !this.removals.isRevisionForgotten(row) ? row : undefined;
  }

  /**
   * Returns the place that `address` names, a path, `id:…` or `id:…/path`; `undefined` is the root. With `deletedToo`
   * an id also finds the last place of a deleted file.
   */
  locate(ns: number, address: string, kind: 'lookup' | 'write', deletedToo = false): Place | undefined {
    if (!address.startsWith('id:')) return placeOf(address, kind);
    const slash = address.indexOf('/');
    const id = slash < 0 ? address : address.slice(0, slash);
    const row = this.findById(ns, id) ?? (deletedToo ? this.findDeletionById(ns, id) : undefined);
    // WriteError has no not_found: an id without an item is a malformed path to write to.
    if (!row) throw kind === 'lookup' ? notFound() : malformed('write');
    return placeOf(row.path + (slash < 0 ? '' : address.slice(slash)), kind);
  }

  /**
   * Creates the missing parents of `place`, and returns the stored path of its folder. Throws `conflict/file_ancestor`
   * when a parent is a file.
   */
  makeParents(transaction: Transaction, ns: number, place: Place): string {
    if (place.parent === '/') return '';
    const parent = this.find(ns, parentOf(place));
    if (parent?.revision === null) return parent.path;
    if (parent) throw conflict('file_ancestor');
    return this.putFolder(transaction, ns, parentOf(place)).path;
  }

  /**
   * Returns the path that an item at `place` will have. Missing parents are added to `made`, by their keys: the first
   * path that needs a parent determines its spelling. Throws like `makeParents`.
   */
  pathAt(ns: number, place: Place, made: Map<string, string>): string {
    const name = place.names.at(-1);
    if (place.parent === '/') return `/${name}`;
    const parent = parentOf(place);
    const row = this.find(ns, parent);
    if (row && row.revision !== null) throw conflict('file_ancestor');
    const path = row?.path ?? made.get(parent.key) ?? this.pathAt(ns, parent, made);
    if (!row) made.set(parent.key, path);
    return `${path}/${name}`;
  }

  /** Creates a folder and its parents at a free place. */
  putFolder(transaction: Transaction, ns: number, place: Place, id = this.mintId()): EntryRow {
    const path = `${this.makeParents(transaction, ns, place)}/${place.names.at(-1)}`;
    return this.#put(transaction, ns, place, { path, id, seq: transaction.ticks.next(ns), revision: null });
  }

  /** Creates a new revision of the file at `place`, and its parents. There must be no folder. */
  putFile(transaction: Transaction, ns: number, place: Place, file: NewFile): EntryRow {
    const existing = this.find(ns, place);
    const path = existing?.path ?? `${this.makeParents(transaction, ns, place)}/${place.names.at(-1)}`;
    const number = transaction.ticks.next(ns);
    const id = existing?.id ?? file.id ?? this.mintId();
    if (existing?.content) this.contents.dropFile(ns, existing.content);
    this.#addRevision(transaction, ns, place, { ...file, id, path, number });
    return this.#put(transaction, ns, place, { path, id, seq: number, revision: number });
  }

  /**
   * Writes an entry of a moved or copied tree at its new place. Returns `false` when the place is taken, or the source
   * entry was removed or replaced meanwhile. The row is hidden until its staging is published.
   */
  stage(transaction: Transaction, row: EntryRow, { place, path, seq, copy }: Arrival): boolean {
    const { ns, content, clientMs } = row;
    if (this.find(ns, row)?.seq !== row.seq || this.find(ns, place)) return false;
    const id = copy ? this.mintId() : row.id;
    const isFile = content !== null && clientMs !== null;
    if (isFile)
      this.#addRevision(transaction, ns, place, { content, clientMs, moved: !copy, id, path, number: seq });
    this.#putRow(transaction, ns, place, { path, id, seq, revision: isFile ? seq : null });
    return true;
  }

  /**
   * Turns a live entry and everything below it into deletions; the history stays, or is removed `forever`. A tree
   * disappears at once, and its rows are cleared away later. With `moved` its files still exist, and count, at another
   * path.
   */
  remove(
    transaction: Transaction,
    row: EntryRow,
    how: { readonly forever: boolean; readonly moved: boolean },
  ): void {
    const { ns, parent, nameKey, id } = row;
    const seq = transaction.ticks.next(ns);
    const key = keyOf(row);
    this.removals.leave({ ns, id, seq });
    this.#sql.putDeletion.run({ ns, parent, nameKey, seq, deletedMs: transaction.nowMs });
    this.#sql.drop.run(ns, parent, nameKey);
    if (row.content !== null && !how.moved) this.contents.dropFile(ns, row.content);
    if (row.revision === null || how.forever) this.removals.begin(transaction, { ns, key, seq }, how);
    transaction.changes.push({ ns, key, tree: row.revision === null });
  }

  /** Removes the history of a place without a live entry, and of everything below it. */
  forget(transaction: Transaction, ns: number, { key }: Place): void {
    this.removals.begin(
      transaction,
      { ns, key, seq: transaction.ticks.next(ns) },
      { forever: true, moved: false },
    );
  }

  /**
   * Yields the live entries below a key, parents before their children, in pieces; the tree may change between two
   * pieces.
   */
  *entriesBelow(ns: number, key: string): Generator<readonly EntryRow[], void, undefined> {
    const { from: parent, to } = below(ns, key);
    let after = { parent, nameKey: '' };
    for (;;) {
      const rows = this.#sql.below.all({ ns, to, ...after, limit: BELOW_ROWS });
      yield rows.filter((row) => !this.removals.ofEntry(row));
      const last = rows.at(-1);
      if (rows.length < BELOW_ROWS || !last) return;
      after = last;
    }
  }

  /** Returns revisions with numbers below `before`, newest first. */
  revisions(
    ns: number,
    of: { readonly id: string } | { readonly parent: string; readonly nameKey: string },
    before: number,
    limit: number,
  ): RevisionRow[] {
    const rows =
      'id' in of
        ? this.#sql.revisionsOf.all(of.id, before, limit)
        : this.#sql.revisionsAt.all(ns, of.parent, of.nameKey, before, limit);
    return rows.filter((row) => row.ns === ns && !this.removals.isRevisionForgotten(row));
  }

  #live(row: EntryRow | undefined): EntryRow | undefined {
    return row && !this.removals.ofEntry(row) ? row : undefined;
  }

  /** Returns the deletion that a removed row will become, while the row still exists. */
  #taken(row: EntryRow | undefined): DeletionRow | undefined {
    return row && this.removals.asDeletion(row);
  }

  #put(transaction: Transaction, ns: number, place: Place, entry: NewEntry): EntryRow {
    this.#putRow(transaction, ns, place, entry);
    this.#sql.dropDeletion.run(ns, place.parent, place.nameKey);
    transaction.changes.push({ ns, key: place.key, tree: false });
    const row = this.find(ns, place);
    if (!row) throw new Error('an entry does not exist right after it was written');
    return row;
  }

  #putRow(transaction: Transaction, ns: number, { parent, nameKey }: Place, entry: NewEntry): void {
    // Rows that a removal left are in conflict with unique places, and those of the same file would be reported twice.
    const left = [this.#sql.find.get(ns, parent, nameKey), ...this.#sql.findById.all(entry.id)];
    for (const row of left) if (row) this.removals.settle(transaction, row);
    this.removals.settleDeletion(transaction, { ns, parent, nameKey });
    this.names.add(ns, nameKey);
    this.#sql.put.run({ ns, parent, nameKey, name: nameIn(entry.path), ...entry });
  }

  #addRevision(
    { nowMs: serverMs }: Transaction,
    ns: number,
    { parent, nameKey }: Place,
    file: NewFile & { readonly id: string; readonly path: string; readonly number: number },
  ): void {
    const { content, clientMs, moved, id, path, number } = file;
    this.contents.addRevision(ns, content);
    if (!moved) this.contents.addFile(ns, content);
    const name = nameIn(path);
    this.#sql.addRevision.run({ number, ns, parent, nameKey, name, path, id, content, clientMs, serverMs });
  }
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
