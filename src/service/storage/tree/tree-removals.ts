import { smallest } from '../../../util/extremes.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Contents } from '../blocks/contents.ts';
import type { Purge } from '../blocks/purge.ts';
import type { Reserve } from '../blocks/reserve.ts';
import { StepRunner } from '../blocks/step-runner.ts';
import type { Transaction } from '../committer.ts';
import {
  type EntryPlace,
  type Placed,
  type PlacedRevision,
  type Removal,
  removalStatements,
  topOf,
  windowOf,
} from './removal-statements.ts';
import { below, type DeletionRow, type EntryRow } from './tree-rows.ts';

/** Rows that one step clears away: some 20 ms, so that other calls get their turn. */
const STEP_ROWS = 200;

/**
 * Removals of trees. Each takes effect at once by one row of its own, whatever the tree's size. The rows below it count
 * as removed from then on and are cleared away step by step, also after a restart.
 */
export class TreeRemovals {
  readonly #sql: ReturnType<typeof removalStatements>;
  readonly #runner = new StepRunner(this);

  constructor(
    database: SqliteDatabase,
    private readonly contents: Contents,
    private readonly purge: Purge,
  ) {
    this.#sql = removalStatements(database);
  }

  /**
   * Removes the entries at a key and below it up to change number `seq`. Clears away as many rows as the transaction has
   * room for.
   */
  begin(
    transaction: Transaction,
    { ns, key, seq }: Pick<Removal, 'ns' | 'key' | 'seq'>,
    how: { readonly forever: boolean; readonly moved: boolean },
  ): void {
    const { nowMs: deletedMs } = transaction;
    const [forever, moved] = [how.forever ? 1 : 0, how.moved ? 1 : 0];
    this.#sql.begin.run({ ns, key, seq, deletedMs, forever, moved, atParent: `${key}/` });
    this.step(transaction);
  }

  /** Clears away more rows, as many as the transaction has room for. */
  step(transaction: Transaction): void {
    const { room } = transaction;
    for (let next = this.#sql.first.get(); next && room.rows > 0; next = this.#sql.first.get())
      this.#step(transaction, next, Math.min(STEP_ROWS, room.rows));
  }

  /** Whether no removal is under way. */
  get isEmpty(): boolean {
    return this.#sql.first.get() === undefined;
  }

  /** Works until no row is left or the storage is closed; the next start continues. */
  work(reserve: Reserve): Promise<void> {
    return this.#runner.run(reserve);
  }

  /** Returns the removal that covers an entry. */
  ofEntry(row: Pick<EntryPlace, keyof Placed | 'seq'>): Removal | undefined {
    return this.#covering(row, row.seq, false);
  }

  /** Returns whether a removal under way covers a folder's children of after change number `since`. */
  hasEmptied(folder: Placed, since: number): boolean {
    return this.#covering(folder, since + 1, false) !== undefined;
  }

  /** Returns whether the entry at a place as of change number `seq` has been removed permanently. */
  isForgotten(row: Placed, seq: number): boolean {
    return this.#covering(row, seq, true) !== undefined;
  }

  /** Returns whether a revision has been removed permanently, with its place or with a later place of its file. */
  isRevisionForgotten(row: PlacedRevision): boolean {
    return this.#isRevisionForgottenBy(row, Number.MAX_SAFE_INTEGER);
  }

  /** Returns whether nothing can be restored at the place of a deletion. */
  isDeletionForgotten(row: DeletionRow): boolean {
    if (row.forgotten || this.isForgotten(row, row.seq)) return true;
    if (row.wasFolder) return false;
    const seq = this.#endOfFile(row);
    return seq !== Number.POSITIVE_INFINITY && !this.#hasOtherHistory(row, seq);
  }

  /** Returns the number of the permanent removal that took a file's last place, or infinity. */
  #endOfFile({ ns, id }: { readonly ns: number; readonly id: string }): number {
    if (this.#sql.anyForever.get(ns, Number.MAX_SAFE_INTEGER) === undefined) return Number.POSITIVE_INFINITY;
    const ends: number[] = [];
    for (const place of [...this.#sql.entriesById.all(id), ...this.#sql.deletionsById.all(id)]) {
      const removal = this.#covering(place, place.seq, true);
      if (removal && !this.#livedOn(id, removal.seq)) ends.push(removal.seq);
    }
    return smallest(ends);
  }

  /** Returns whether one of the permanent removals up to number `seq` took a revision. */
  #isRevisionForgottenBy(row: PlacedRevision, seq: number): boolean {
    const ofPlace = this.#covering(row, row.number, true)?.seq ?? Number.POSITIVE_INFINITY;
    return ofPlace <= seq || this.#endOfFile(row) <= seq;
  }

  /** Returns whether the permanent removals up to number `seq` left a revision of another file at a place. */
  #hasOtherHistory({ ns, parent, nameKey, id }: Placed & { readonly id: string }, seq: number): boolean {
    const others = this.#sql.otherRevisions.all({ ns, parent, nameKey, id });
    return others.some((other) => !this.#isRevisionForgottenBy(other, seq));
  }

  /** Returns the deletion that an entry covered by a removal will become, or `undefined` when none will remain. */
  asDeletion(row: EntryRow): DeletionRow | undefined {
    const removal = this.ofEntry(row);
    if (!removal || removal.forever) return undefined;
    const { ns, parent, nameKey, name, path, id, seq, revision } = row;
    const { deletedMs } = removal;
    const wasFolder = revision === null ? 1 : 0;
    const deletion = {
      ns,
      parent,
      nameKey,
      name,
      path,
      id,
      seq,
      wasFolder,
      implied: 1,
      forgotten: 0,
      deletedMs,
    };
    return this.isDeletionForgotten(deletion) ? undefined : deletion;
  }

  /** Clears away a covered entry before another one takes its place or its id. */
  settle(transaction: Transaction, row: EntryPlace): void {
    const removal = this.ofEntry(row);
    if (removal) this.#toDeletion(transaction, removal, row);
  }

  /** Purges the file of a permanent deletion before another entry takes its place. */
  settleDeletion(transaction: Transaction, { ns, parent, nameKey }: Placed): void {
    if (this.#sql.anyForever.get(ns, Number.MAX_SAFE_INTEGER) === undefined) return;
    for (const { id, seq, forgotten } of this.#sql.deletionAt.all({ ns, parent, nameKey })) {
      const removal = forgotten ? undefined : this.#covering({ ns, parent, nameKey }, seq, true);
      if (removal) this.#purgeFile(transaction, id, removal);
    }
  }

  /**
   * Records that a file leaves a place with change number `seq`. Earlier permanent removals, made while the file was
   * here, took its former places and not the file. Those places become tombstones now, because no row will later show
   * that the file still existed.
   */
  leave({ ns, id, seq }: { readonly ns: number; readonly id: string; readonly seq: number }): void {
    if (this.#sql.anyForever.get(ns, seq) === undefined) return;
    for (const place of this.#sql.deletionsById.all(id)) {
      const removal = this.#covering(place, place.seq, true);
      if (removal && removal.seq < seq) this.#sql.forget.run(place);
    }
  }

  /** Returns the first removal that covers a place as of change number `seq`. */
  #covering(row: Placed, seq: number, forever: boolean): Removal | undefined {
    const { ns } = row;
    if (this.#sql.any.get(ns) === undefined) return undefined;
    const key = row.parent + row.nameKey;
    let first: Removal | undefined;
    for (let end = key.length; end > 0; end = key.lastIndexOf('/', end - 1)) {
      const removal = this.#sql.covering.get({ ns, key: key.slice(0, end), seq, forever: forever ? 1 : 0 });
      if (removal && (!first || removal.seq < first.seq)) first = removal;
    }
    return first;
  }

  /** Returns whether a file or folder had a place after change number `seq`. */
  #livedOn(id: string, seq: number): boolean {
    return this.#sql.entriesById
      .all(id)
      .some((row) => (this.ofEntry(row)?.seq ?? Number.POSITIVE_INFINITY) > seq);
  }

  /** Examines up to `limit` rows of a removal, fewer if the revisions of their files fill the transaction. */
  #step(transaction: Transaction, removal: Removal, limit: number): void {
    const { room } = transaction;
    const { ns, seq, phase } = removal;
    const phases = removal.forever ? [this.#entries, this.#deletions, this.#revisions] : [this.#entries];
    const rows = phases[phase]?.call(this, transaction, removal, limit) ?? [];
    const last = rows.at(-1);
    // In the same transaction as the work: a failure undoes both.
    if (rows.length === limit || room.rows <= 0) {
      if (last)
        this.#sql.goOn.run({
          ns,
          seq,
          phase,
          parent: last.parent,
          nameKey: last.nameKey,
          number: last.number ?? 0,
        });
    } else if (phase + 1 < phases.length)
      this.#sql.goOn.run({ ns, seq, phase: phase + 1, parent: `${removal.key}/`, nameKey: '', number: 0 });
    else this.#sql.end.run(ns, seq);
    room.rows -= Math.max(1, rows.length);
  }

  #entries(transaction: Transaction, removal: Removal, limit: number): readonly Looked[] {
    const examined: Looked[] = [];
    for (const row of this.#sql.entries.all(windowOf(removal, limit))) {
      if (row.seq <= removal.seq) {
        const forever = this.#foreverOver(removal, row);
        if (forever && !this.#purgeExcess(transaction, row.id, forever.seq)) break;
        this.#toDeletion(transaction, removal, row, forever);
      }
      examined.push(row);
    }
    return examined;
  }

  /** Returns the permanent removal of an entry that `removal` covers, if there is one. */
  #foreverOver(removal: Removal, row: EntryPlace): Removal | undefined {
    return removal.forever ? removal : this.#covering(row, row.seq, true);
  }

  #toDeletion(
    transaction: Transaction,
    removal: Removal,
    row: EntryPlace,
    forever = this.#foreverOver(removal, row),
  ): void {
    const { ns, parent, nameKey, id } = row;
    const forgotten = forever ? 1 : 0;
    const deletion = { seq: transaction.ticks.next(ns), deletedMs: removal.deletedMs, forgotten };
    this.leave({ ns, id, seq: removal.seq });
    const content = this.#sql.contentAt.get({ ns, parent, nameKey })?.content;
    if (content !== undefined && !removal.moved) this.contents.dropFile(ns, content);
    this.#sql.putDeletion.run({ ns, parent, nameKey, ...deletion });
    this.#sql.dropEntry.run({ ns, parent, nameKey });
    if (forever) this.#purgeFile(transaction, id, forever);
  }

  #deletions(transaction: Transaction, removal: Removal, limit: number): readonly Looked[] {
    const window = windowOf(removal, limit);
    const top = window.nameKey === '' ? this.#sql.deletionAt.all(topOf(removal)) : [];
    if (!top.every((row) => this.#forget(transaction, removal, row))) return [];
    const rows = this.#sql.deletions.all(window);
    const cut = rows.findIndex((row) => !this.#forget(transaction, removal, row));
    return cut < 0 ? rows : rows.slice(0, cut);
  }

  /** Purges the file of a deletion. Returns whether that is done: a long history takes several transactions. */
  #forget(
    transaction: Transaction,
    removal: Removal,
    row: EntryPlace & { readonly forgotten: number },
  ): boolean {
    if (row.forgotten || row.seq > removal.seq) return true;
    if (!this.#purgeExcess(transaction, row.id, removal.seq)) return false;
    this.#purgeFile(transaction, row.id, removal);
    this.#sql.forget.run(row);
    return true;
  }

  #revisions(_: Transaction, removal: Removal, limit: number): readonly Looked[] {
    const window = windowOf(removal, limit);
    const { parent, nameKey, number: after } = window;
    const top = nameKey === '' ? this.#sql.revisionsAt.all({ ...topOf(removal), after, limit }) : [];
    const rows = [
      // The position of the removal stays before the rows below its key.
      ...top.map(({ number }) => ({ parent, nameKey, number })),
      ...this.#sql.revisions.all({ ...window, limit: limit - top.length }),
    ];
    for (const { number } of rows) if (number <= removal.seq) this.purge.enqueue(removal.ns, number);
    return rows;
  }

  /**
   * Returns whether all revisions of a file without a place after change number `seq` can be purged in this transaction.
   * Otherwise purges as many as it has room for. The row at the file's last place must stay, because the removal covers
   * the other revisions by it.
   */
  #purgeExcess({ room }: Transaction, id: string, seq: number): boolean {
    const rowsMax = Math.max(0, room.rows);
    const revisions = this.#sql.formerRevisions.all(id, rowsMax + 1);
    if (revisions.length <= rowsMax || this.#livedOn(id, seq)) return true;
    for (const { ns, number } of revisions.slice(0, rowsMax)) this.purge.enqueue(ns, number);
    room.rows = 0;
    return false;
  }

  /**
   * Purges the history of a file without a place after a removal, and its deletions where nothing else was. The revisions
   * that the removal covers are left to its last phase.
   */
  #purgeFile(transaction: Transaction, id: string, removal: Removal): void {
    const { ns, key, seq } = removal;
    if (this.#livedOn(id, seq)) return;
    for (const left of this.#sql.entriesById.all(id)) this.settle(transaction, left);
    for (const revision of this.#sql.revisionsElsewhere.all({
      id,
      seq,
      ...topOf(removal),
      ...below(ns, key),
    })) {
      this.purge.enqueue(revision.ns, revision.number);
      transaction.room.rows--;
    }
    // The file's former places have nothing to restore either.
    for (const row of this.#sql.deletionsById.all(id))
      if (!row.wasFolder && !this.#hasOtherHistory(row, seq)) this.#sql.forget.run(row);
  }
}

/** A row that a step has examined. */
type Looked = Omit<Placed, 'ns'> & { readonly number?: number };
