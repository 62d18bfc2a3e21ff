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

/** A file's content and what a commit says of it. */
export interface NewFile {
  readonly content: number;
  readonly clientMs: number;
  /** The file keeps its id through overwriting, moving and restoring. */
  readonly id?: string;
  /** It was moved: it is counted as a file already. */
  readonly moved?: boolean;
}

interface NewEntry {
  readonly path: string;
  readonly id: string;
  readonly seq: number;
  readonly revision: number | null;
}

/** Where an entry of a large move or copy goes, and under which number. */
export interface Arrival {
  readonly place: Place;
  readonly path: string;
  readonly seq: number;
  readonly copy: boolean;
}

/**
 * The live tree of every namespace, what was deleted from it, and the revisions. Methods that take a
 * `Transaction` change it, and only inside one.
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

  /** What is live at a place. */
  find(ns: number, place: { readonly parent: string; readonly nameKey: string }): EntryRow | undefined {
    return this.#live(this.#sql.find.get(ns, place.parent, place.nameKey));
  }

  /** What lives under an id in this namespace: ids are unique over all of them. */
  findById(ns: number, id: string): EntryRow | undefined {
    return this.#sql.findById.all(id).find((row) => row.ns === ns && this.#live(row));
  }

  /** What was deleted there and is not forgotten. */
  findDeletion(
    ns: number,
    place: { readonly parent: string; readonly nameKey: string },
  ): DeletionRow | undefined {
    const row = this.#sql.findDeletion.get(ns, place.parent, place.nameKey);
    if (row) return this.removals.isDeletionForgotten(row) ? undefined : row;
    return this.#taken(this.#sql.find.get(ns, place.parent, place.nameKey));
  }

  /** Where a file or folder that is not live was last, unless it is forgotten. */
  findDeletionById(ns: number, id: string): DeletionRow | undefined {
    const [left] = this.#sql.findById.all(id);
    const row = this.#taken(left) ?? this.#sql.findDeletionById.get(id);
    return row?.ns === ns && !this.removals.isDeletionForgotten(row) ? row : undefined;
  }

  /** Whether an id is live, or something of it is kept that could bring it back. */
  isKnown(ns: number, id: string): boolean {
    const isKept = this.findById(ns, id) ?? this.findDeletionById(ns, id);
    return isKept !== undefined || this.revisions(ns, { id }, Number.MAX_SAFE_INTEGER, 1).length > 0;
  }

  /** A revision by its number, whosever it is. */
  revision(number: number): RevisionRow | undefined {
    return this.#sql.findRevision.get(number);
  }

  /** A revision of this namespace. */
  findRevision(ns: number, number: number): RevisionRow | undefined {
    const row = this.revision(number);
    return row?.ns === ns && !this.removals.isRevisionForgotten(row) ? row : undefined;
  }

  /**
   * The place that `address` names, a path, `id:…` or `id:…/path`; `undefined` is the root. With
   * `deletedToo` an id finds where its file was last.
   */
  locate(ns: number, address: string, kind: 'lookup' | 'write', deletedToo = false): Place | undefined {
    if (!address.startsWith('id:')) return placeOf(address, kind);
    const slash = address.indexOf('/');
    const id = slash < 0 ? address : address.slice(0, slash);
    const row = this.findById(ns, id) ?? (deletedToo ? this.findDeletionById(ns, id) : undefined);
    // WriteError has no not_found: an id that names nothing is no place to write to.
    if (!row) throw kind === 'lookup' ? notFound() : malformed('write');
    return placeOf(row.path + (slash < 0 ? '' : address.slice(slash)), kind);
  }

  /**
   * The stored path of the folder that is to hold `place`; missing ones are made. Throws
   * `conflict/file_ancestor` when a file is in the way.
   */
  makeParents(transaction: Transaction, ns: number, place: Place): string {
    if (place.parent === '/') return '';
    const parent = this.find(ns, parentOf(place));
    if (parent?.revision === null) return parent.path;
    if (parent) throw conflict('file_ancestor');
    return this.putFolder(transaction, ns, parentOf(place)).path;
  }

  /**
   * Returns the path that something at `place` will have. Parents that are missing are noted in `made`, by their keys: the
   * first path that needs one says how it is spelt. Throws as `makeParents`.
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

  /** Makes a folder, and its parents, where nothing is. */
  putFolder(transaction: Transaction, ns: number, place: Place, id = this.mintId()): EntryRow {
    const path = `${this.makeParents(transaction, ns, place)}/${place.names.at(-1)}`;
    return this.#put(transaction, ns, place, { path, id, seq: transaction.ticks.next(), revision: null });
  }

  /** Makes a new revision of the file at `place`, whose parents are made; a folder must not be there. */
  putFile(transaction: Transaction, ns: number, place: Place, file: NewFile): EntryRow {
    const existing = this.find(ns, place);
    const path = existing?.path ?? `${this.makeParents(transaction, ns, place)}/${place.names.at(-1)}`;
    const number = transaction.ticks.next();
    const id = existing?.id ?? file.id ?? this.mintId();
    if (existing?.content) this.contents.dropFile(ns, existing.content);
    this.#addRevision(transaction, ns, place, { ...file, id, path, number });
    return this.#put(transaction, ns, place, { path, id, seq: number, revision: number });
  }

  /**
   * Puts an entry of a tree that is moved or copied at its new place, and returns whether it did: not when something has
   * come there, or the entry is gone or another one by now. It is hidden until its staging is published.
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
   * Moves the live entry and all below it to the deletions; the history stays, or is gone `forever`. A tree is gone for
   * everybody at once, and its rows are cleared away later. With `moved` its files live on, and count, elsewhere.
   */
  remove(
    transaction: Transaction,
    row: EntryRow,
    how: { readonly forever: boolean; readonly moved: boolean },
  ): void {
    const { ns, parent, nameKey, id } = row;
    const seq = transaction.ticks.next();
    const key = keyOf(row);
    this.removals.leave({ ns, id, seq });
    this.#sql.putDeletion.run({ ns, parent, nameKey, seq, deletedMs: transaction.nowMs });
    this.#sql.drop.run(ns, parent, nameKey);
    if (row.content !== null && !how.moved) this.contents.dropFile(ns, row.content);
    if (row.revision === null || how.forever) this.removals.begin(transaction, { ns, key, seq }, how);
    transaction.changes.push({ ns, key, tree: row.revision === null });
  }

  /** Takes away the history of a place where nothing is live, and of all below it. */
  forget(transaction: Transaction, ns: number, { key }: Place): void {
    this.removals.begin(
      transaction,
      { ns, key, seq: transaction.ticks.next() },
      { forever: true, moved: false },
    );
  }

  /** The live entries below a key, parents before their children, in pieces: between two of them the tree may change. */
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

  /** Revisions with numbers below `before`, the newest first. */
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

  /** What a removal took along, whose row is still there. */
  #taken(row: EntryRow | undefined): DeletionRow | undefined {
    return row && this.removals.asDeletion(row);
  }

  #put(transaction: Transaction, ns: number, place: Place, entry: NewEntry): EntryRow {
    this.#putRow(transaction, ns, place, entry);
    this.#sql.dropDeletion.run(ns, place.parent, place.nameKey);
    transaction.changes.push({ ns, key: place.key, tree: false });
    const row = this.find(ns, place);
    if (!row) throw new Error('an entry is gone right after it was written');
    return row;
  }

  #putRow(transaction: Transaction, ns: number, { parent, nameKey }: Place, entry: NewEntry): void {
    // A row that a removal left has to go, as places are unique; so has one of the same file, to be told once.
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
