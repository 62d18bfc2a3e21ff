import { setImmediate as otherCalls } from 'node:timers/promises';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { NameFilter, NameLookup } from '../storage.ts';
import {
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

/** Where to look: below a key, at what is live or at what is deleted. */
interface KeyRange extends Below {
  readonly deleted: boolean;
}

/** Rows of an index that one piece of a search takes out of the database: a few ms. */
const PIECE_ROWS = 250;

/** Rows of an index that SQLite goes through, and hands out only those that a filter lets pass, in a quarter of a piece. */
const SKIMMED_ROWS = 1000;

/** A quarter of a piece. */
const SKIMMED = PIECE_ROWS / 4;

/** Words of the index that one round of housekeeping looks at, in windows. */
const WINDOW_WORDS = 1000;
const WINDOWS_PER_ROUND = 100;

/** Comes after every text that begins with what stands before it, and after that text alone. */
const AFTER_ALL = '\u{10FFFF}';
const AFTER_EXACT = '\u0001';

type FoundRow = EntryRow | DeletionRow;

/** What a name or word is, or begins with. */
type Text = Omit<Extract<NameLookup, { readonly text: string }>, 'by'>;

/** What was found, and how much of a piece that took. */
interface Piece {
  readonly found: readonly FoundRow[];
  readonly read: number;
}

/**
 * Finds files and folders by their names. Each word of a name leads to the name's key, and that to all that have this
 * name, so a move or a deletion changes nothing here. A word of a name that nothing has any more is cleared away by
 * housekeeping.
 */
export class NameIndex {
  readonly #sql: ReturnType<typeof nameStatements>;
  #lookedAt: WordRow = { ns: 0, word: '', nameKey: '' };

  constructor(database: SqliteDatabase) {
    this.#sql = nameStatements(database);
  }

  /** Something in `ns` has this name now. Only inside a transaction. */
  add(ns: number, nameKey: string): void {
    for (const word of wordsOf(nameKey)) this.#sql.add.run(ns, word, nameKey);
  }

  /**
   * What has a name of `lookup` that passes the filter, each once. Every step of the iteration reads a bounded number of rows,
   * and gives what it has found, be it nothing; between two steps the tree may change.
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
      // A name with several words that begin alike comes once for each: the first one counts.
      for (const { word, nameKey } of rows)
        if (filter.matches(nameKey) && isFirst(word, nameKey, lookup))
          yield* this.#named(scope, nameKey, () => true);
      after = next;
    }
  }

  /** How many items a lookup by a word goes through, up to `max`; so many names are `max`, whatever has them. */
  countNamed({ ns, deleted }: Pick<KeyRange, 'ns' | 'deleted'>, text: Text, max: number): number {
    const range = { ns, word: text.text, end: endOf(text), limit: max };
    const names = this.#sql.countNames.get(range)?.rows ?? 0;
    if (names >= max) return max;
    return this.#table(deleted).countNamed.get(range)?.rows ?? 0;
  }

  /** How many items are below a folder, up to `max`. */
  countBelow({ deleted, ...range }: KeyRange, max: number): number {
    return this.#table(deleted).countBelow.get({ ...range, limit: max })?.rows ?? 0;
  }

  /** Drops words of names that neither a live nor a deleted item has, up to a bounded number looked at. */
  async dropUnused(reserve: Reserve): Promise<void> {
    for (let windows = 0; windows < WINDOWS_PER_ROUND && !reserve.isClosed; windows++) {
      const rows = this.#sql.words.all({ ...this.#lookedAt, limit: WINDOW_WORDS });
      const unused = rows.filter((row) => !this.#isUsed(row));
      if (unused.length > 0)
        await reserve.commit(() => {
          // Asked again: others have committed since.
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

  /** What has this name. */
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

  /** What has a name that begins with `text`. */
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
    let before: number | undefined = Number.MAX_SAFE_INTEGER;
    while (before !== undefined) {
      const here: typeof range & { before: number } = { ...range, before };
      yield this.#matching(scope, changed.all(here), filter);
      before = changedEnd.get(here)?.seq;
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

  /** Those of skimmed places that match. */
  #matching({ ns, deleted }: KeyRange, places: readonly Place[], { matches }: NameFilter): Piece {
    const { row } = this.#table(deleted);
    const wanted = places.filter(({ nameKey }) => matches(nameKey));
    return {
      found: wanted.flatMap(({ parent, nameKey }) => row.get({ ns, parent, nameKey }) ?? []),
      read: SKIMMED + places.length + wanted.length,
    };
  }
}

/** The keys of a range, for a statement's parameters. */
function keysOf({ ns, from, to }: KeyRange): Below {
  return { ns, from, to };
}

/** The longest parts, for `HAS_PARTS`: every text has an empty one. */
function partsOf({ parts }: NameFilter): Parts {
  const [one = '', two = '', three = ''] = parts.toSorted((first, other) => other.length - first.length);
  return { one, two, three };
}

/** The end of what begins with a text, or is it. */
function endOf({ text, exact }: Text): string {
  return text + (exact ? AFTER_EXACT : AFTER_ALL);
}

/** Whether `word` is the first of a name's words, in the order of the index, that a lookup finds. */
function isFirst(word: string, nameKey: string, { text, exact }: Text): boolean {
  if (exact) return true;
  for (const other of wordsOf(nameKey))
    if (other.startsWith(text) && Buffer.compare(Buffer.from(other), Buffer.from(word)) < 0) return false;
  return true;
}
