import { setImmediate as otherCalls } from 'node:timers/promises';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { NameFilter, NameLookup } from '../storage.ts';
import {
  type ChangeKey,
  type ChildKey,
  nameStatements,
  type Parts,
  type Place,
  type TableStatements,
  type WordKey,
  type WordRow,
} from './name-statements.ts';
import { wordsOf } from './name-words.ts';
import type { Below, DeletionRow, EntryRow } from './tree-rows.ts';

/** The scope of a search: live or deleted items below a key. */
interface KeyRange extends Below {
  readonly deleted: boolean;
}

/** Index rows that one piece of a search reads: a few ms. */
const PIECE_ROWS = 250;

/** Index rows that one filtered scan inside SQLite reads. */
const SKIMMED_ROWS = 1000;

/** Cost of a filtered scan, in rows of a piece. */
const SKIMMED = PIECE_ROWS / 4;

/** Words of the index in one window, and windows that one round of housekeeping examines. */
const WINDOW_WORDS = 1000;
const WINDOWS_PER_ROUND = 100;

/** The highest character: appended to a text, it sorts after every text with that prefix. */
const AFTER_ALL = '\u{10FFFF}';
const AFTER_EXACT = '\u0001';

type FoundRow = EntryRow | DeletionRow;

/** The text that a name or word must equal or begin with. */
type Text = Omit<Extract<NameLookup, { readonly text: string }>, 'by'>;

/** Results, and the number of rows that were read for them. */
interface Piece {
  readonly found: readonly FoundRow[];
  readonly read: number;
}

/**
 * Finds files and folders by their names. Each word leads to the keys of names that contain it, and each key to all
 * items with that name, so a move or a deletion changes nothing here. Housekeeping removes words of names that no item
 * has any more.
 */
export class NameIndex {
  readonly #sql: ReturnType<typeof nameStatements>;
  #lookedAt: WordRow = { ns: 0, word: '', nameKey: '' };

  constructor(database: SqliteDatabase) {
    this.#sql = nameStatements(database);
  }

  /** Indexes a name that an item in `ns` has now. Call inside a transaction only. */
  add(ns: number, nameKey: string): void {
    for (const word of wordsOf(nameKey)) this.#sql.add.run(ns, word, nameKey);
  }

  /**
   * Yields each item once whose name is found by `lookup` and passes the filter. Each step reads a bounded number of
   * rows, and may find nothing; the tree may change between two steps.
   */
  *find(scope: KeyRange, lookup: NameLookup, filter: NameFilter): Generator<FoundRow[], void, undefined> {
    let found: FoundRow[] = [];
    let read = 0;
    for (const piece of this.#pieces(scope, lookup, filter)) {
      for (const row of piece.found) found.push(row);
      read += piece.read;
      if (read < PIECE_ROWS) continue;
      yield found;
      found = [];
      read = 0;
    }
    yield found;
  }

  *#pieces(scope: KeyRange, lookup: NameLookup, filter: NameFilter): Generator<Piece, void, undefined> {
    if (lookup.by === 'change') return yield* this.#byChange(scope, filter);
    if (lookup.by === 'folder') return yield* this.#inFolder(scope, filter);
    if (lookup.by === 'name')
      return yield* lookup.exact
        ? this.#named(scope, lookup.text, filter.matches)
        : this.#namedLike(scope, lookup.text, filter);
    const range = { ns: scope.ns, end: endOf(lookup), limit: SKIMMED_ROWS, ...partsOf(filter) };
    let after: WordKey | undefined = { word: lookup.text, nameKey: '' };
    while (after) {
      const here = { ...range, ...after };
      const rows = this.#sql.names.all(here);
      const next = this.#sql.namesEnd.get(here);
      yield { found: [], read: SKIMMED + rows.length };
      // A name with several words that begin alike appears once for each: only the first one counts.
      for (const { word, nameKey } of rows)
        if (filter.matches(nameKey) && isFirst(word, nameKey, lookup))
          yield* this.#named(scope, nameKey, () => true);
      after = next;
    }
  }

  /** Returns the number of items that a search by a word examines, at most `max`. `max` names count as `max` items. */
  countNamed({ ns, deleted }: Pick<KeyRange, 'ns' | 'deleted'>, text: Text, max: number): number {
    const range = { ns, word: text.text, end: endOf(text), limit: max };
    const names = this.#sql.countNames.get(range)?.rows ?? 0;
    if (names >= max) return max;
    return this.#table(deleted).countNamed.get(range)?.rows ?? 0;
  }

  /** Returns the number of items below a folder, at most `max`. */
  countBelow({ deleted, ...range }: KeyRange, max: number): number {
    return this.#table(deleted).countBelow.get({ ...range, limit: max })?.rows ?? 0;
  }

  /** Examines a bounded number of words, and removes those of names that neither a live nor a deleted item has. */
  async dropUnused(reserve: Reserve): Promise<void> {
    for (let windows = 0; windows < WINDOWS_PER_ROUND && !reserve.isClosed; windows++) {
      const rows = this.#sql.words.all({ ...this.#lookedAt, limit: WINDOW_WORDS });
      const unused = rows.filter((row) => !this.#isUsed(row));
      if (unused.length > 0)
        await reserve.commit(() => {
          // Checked again, because others have committed since.
          for (const row of unused) if (!this.#isUsed(row)) this.#sql.drop.run(row);
        });
      const last = rows.at(-1);
      this.#lookedAt = rows.length < WINDOW_WORDS || !last ? { ns: 0, word: '', nameKey: '' } : last;
      if (this.#lookedAt.ns === 0) return;
      await otherCalls();
    }
  }

  #isUsed({ ns, nameKey }: WordRow): boolean {
    return this.#sql.isUsed.get({ ns, nameKey }) !== undefined;
  }

  #table(deleted: boolean): TableStatements {
    return deleted ? this.#sql.deletions : this.#sql.entries;
  }

  /** Yields the items with this name. */
  *#named(
    { ns, from, to, deleted }: KeyRange,
    nameKey: string,
    matches: (nameKey: string) => boolean,
  ): Generator<Piece, void, undefined> {
    const { named, row } = this.#table(deleted);
    for (let after: string | undefined = from.slice(0, -1); after !== undefined; ) {
      const parents = named.all({ ns, nameKey, after, to, limit: PIECE_ROWS });
      const wanted = parents.length > 0 && matches(nameKey) ? parents : [];
      yield {
        found: wanted.flatMap(({ parent }) => row.get({ ns, parent, nameKey }) ?? []),
        read: 1 + parents.length + wanted.length,
      };
      after = parents.length < PIECE_ROWS ? undefined : parents.at(-1)?.parent;
    }
  }

  /** Yields the items whose name begins with `text`. */
  *#namedLike(scope: KeyRange, text: string, filter: NameFilter): Generator<Piece, void, undefined> {
    const { namedLike, namedLikeEnd } = this.#table(scope.deleted);
    const range = { ...keysOf(scope), end: text + AFTER_ALL, limit: SKIMMED_ROWS, ...partsOf(filter) };
    let after: Place | undefined = { nameKey: text, parent: '' };
    while (after) {
      const here: typeof range & Place = { ...range, ...after };
      yield this.#matching(scope, namedLike.all(here), filter);
      after = namedLikeEnd.get(here);
    }
  }

  *#byChange(scope: KeyRange, filter: NameFilter): Generator<Piece, void, undefined> {
    const { changed, changedEnd } = this.#table(scope.deleted);
    const range = { ...keysOf(scope), limit: SKIMMED_ROWS, ...partsOf(filter) };
    let from: ChangeKey | undefined = { before: Number.MAX_SAFE_INTEGER, beforeNs: 0 };
    while (from) {
      const here: typeof range & ChangeKey = { ...range, ...from };
      yield this.#matching(scope, changed.all(here), filter);
      const end = changedEnd.get(here);
      from = end && { before: end.seq, beforeNs: end.ns };
    }
  }

  *#inFolder(scope: KeyRange, filter: NameFilter): Generator<Piece, void, undefined> {
    const { inFolder, inFolderEnd } = this.#table(scope.deleted);
    const range = { ...keysOf(scope), limit: SKIMMED_ROWS, ...partsOf(filter) };
    let after: ChildKey | undefined = { parent: scope.from, seq: -1 };
    while (after) {
      const here: typeof range & ChildKey = { ...range, ...after };
      yield this.#matching(scope, inFolder.all(here), filter);
      after = inFolderEnd.get(here);
    }
  }

  /** Returns the items at those places whose names match. */
  #matching({ ns, deleted }: KeyRange, places: readonly Place[], { matches }: NameFilter): Piece {
    const { row } = this.#table(deleted);
    const wanted = places.filter(({ nameKey }) => matches(nameKey));
    return {
      found: wanted.flatMap(({ parent, nameKey }) => row.get({ ns, parent, nameKey }) ?? []),
      read: SKIMMED + places.length + wanted.length,
    };
  }
}

/** Returns the bounds of a range as statement parameters. */
function keysOf({ ns, from, to }: KeyRange): Below {
  return { ns, from, to };
}

/** Returns the longest parts, for `HAS_PARTS`. Missing ones are `''`, which every text contains. */
function partsOf({ parts }: NameFilter): Parts {
  const [one = '', two = '', three = ''] = parts.toSorted((first, other) => other.length - first.length);
  return { one, two, three };
}

/** Returns the end of the range of texts that equal a text or begin with it. */
function endOf({ text, exact }: Text): string {
  return text + (exact ? AFTER_EXACT : AFTER_ALL);
}

/** Returns whether `word` is the first word of the name, in index order, that the search finds. */
function isFirst(word: string, nameKey: string, { text, exact }: Text): boolean {
  if (exact) return true;
  for (const other of wordsOf(nameKey))
    if (other.startsWith(text) && Buffer.compare(Buffer.from(other), Buffer.from(word)) < 0) return false;
  return true;
}
