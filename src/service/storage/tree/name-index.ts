import { setImmediate as otherCalls } from 'node:timers/promises';
import type { Reserve } from '../blocks/reserve.ts';
import type { Database } from '../database.ts';
import type { NameLookup } from '../storage.ts';
import { type Below, type DeletionRow, type EntryRow, SELECT_DELETION, SELECT_ENTRY } from './tree-rows.ts';
import { wordsOf } from './words.ts';

/** Where to look: below a key, at what is live or at what is deleted. */
interface KeyRange extends Below {
  readonly deleted: boolean;
}

/** Rows of an index that one piece of a search reads: a few ms. */
const PIECE_ROWS = 250;

/** Words of the index that one round of housekeeping looks at, in windows. */
const WINDOW_WORDS = 1000;
const WINDOWS_PER_ROUND = 100;

/** Comes after every text that begins with what stands before it, and after that text alone. */
const AFTER_ALL = '\u{10FFFF}';
const AFTER_EXACT = '\u0001';

type FoundRow = EntryRow | DeletionRow;

/** What a name or word is, or begins with. */
type Text = Omit<NameLookup & { readonly by: 'word' }, 'by'>;

/** What was found in a number of rows that were read. */
interface Piece {
  readonly found: readonly FoundRow[];
  readonly read: number;
}

interface WordRow {
  readonly ns: number;
  readonly word: string;
  readonly nameKey: string;
}

/**
 * Finds files and folders by their names. Each word of a name leads to the name's key, and that to all that have this
 * name, so a move or a deletion changes nothing here. A word of a name that nothing has any more is cleared away by
 * housekeeping.
 */
export class NameIndex {
  readonly #sql: ReturnType<typeof statements>;
  #lookedAt: WordRow = { ns: 0, word: '', nameKey: '' };

  constructor(database: Database) {
    this.#sql = statements(database);
  }

  /** Something in `ns` has this name now. Only inside a transaction. */
  add(ns: number, nameKey: string): void {
    for (const word of wordsOf(nameKey)) this.#sql.add.run(ns, word, nameKey);
  }

  /**
   * What has a name of `lookup` that `matches`, each once. Every step of the iteration reads a bounded number of rows,
   * and gives what it has found, be it nothing; between two steps the tree may change.
   */
  *find(
    scope: KeyRange,
    lookup: NameLookup,
    matches: (nameKey: string) => boolean,
  ): Generator<FoundRow[], void, undefined> {
    let found: FoundRow[] = [];
    let read = 0;
    for (const piece of this.#pieces(scope, lookup, matches)) {
      for (const row of piece.found) found.push(row);
      read += piece.read;
      if (read < PIECE_ROWS) continue;
      yield found;
      found = [];
      read = 0;
    }
    yield found;
  }

  *#pieces(
    scope: KeyRange,
    lookup: NameLookup,
    matches: (nameKey: string) => boolean,
  ): Generator<Piece, void, undefined> {
    if (lookup.by === 'change') return yield* this.#byChange(scope, matches);
    if (lookup.by === 'name') return yield* this.#withNames(scope, lookup, matches);
    const range = { ns: scope.ns, end: endOf(lookup), limit: PIECE_ROWS };
    let after = { word: lookup.text, nameKey: '' };
    for (;;) {
      const rows = this.#sql.names.all({ ...range, ...after });
      yield { found: [], read: rows.length };
      // A name with several words that begin alike comes once for each: the first one counts.
      for (const { word, nameKey } of rows)
        if (matches(nameKey) && isFirst(word, nameKey, lookup))
          yield* this.#withNames(scope, { text: nameKey, exact: true }, () => true);
      const last = rows.at(-1);
      if (rows.length < PIECE_ROWS || !last) return;
      after = last;
    }
  }

  /** How many names have a word that is or begins with a text, up to `max`. */
  count(ns: number, text: Text, max: number): number {
    return this.#sql.count.get({ ns, word: text.text, end: endOf(text), limit: max })?.names ?? 0;
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

  *#withNames(
    { ns, from, to, deleted }: KeyRange,
    text: Text,
    matches: (nameKey: string) => boolean,
  ): Generator<Piece, void, undefined> {
    const { named, row } = deleted ? this.#sql.deletions : this.#sql.entries;
    let after = { nameKey: text.text, parent: text.exact ? from.slice(0, -1) : '' };
    for (;;) {
      const places = named.all({ ns, ...after, end: endOf(text), limit: PIECE_ROWS });
      const wanted = places.filter(
        ({ nameKey, parent }) => parent >= from && parent < to && matches(nameKey),
      );
      yield {
        found: wanted.flatMap((place) => row.get({ ns, ...place }) ?? []),
        read: 1 + places.length + wanted.length,
      };
      const last = places.at(-1);
      if (places.length < PIECE_ROWS || !last) return;
      after = last;
    }
  }

  *#byChange(
    { ns, from, to, deleted }: KeyRange,
    matches: (nameKey: string) => boolean,
  ): Generator<Piece, void, undefined> {
    const { changed, row } = deleted ? this.#sql.deletions : this.#sql.entries;
    let before = Number.MAX_SAFE_INTEGER;
    for (;;) {
      const places = changed.all({ ns, before, limit: PIECE_ROWS });
      const wanted = places.filter(
        (place) => place.ns === ns && place.parent >= from && place.parent < to && matches(place.nameKey),
      );
      yield {
        found: wanted.flatMap((place) => row.get(place) ?? []),
        read: places.length + wanted.length,
      };
      const last = places.at(-1);
      if (places.length < PIECE_ROWS || !last) return;
      before = last.seq;
    }
  }
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

/** Prepared statements over names and their words; each reads along one index. */
function statements(database: Database) {
  type Named = { ns: number; nameKey: string; parent: string };
  type Changed = { ns: number; before: number; limit: number };
  type ChangedRow = Named & { seq: number };
  type Range = { ns: number; word: string; end: string; limit: number };
  const named = (table: string, where = '') =>
    database.prepare<[Named & { end: string; limit: number }], { nameKey: string; parent: string }>(
      `SELECT name_key AS nameKey, parent FROM ${table}
       WHERE ns = @ns AND (name_key, parent) > (@nameKey, @parent) AND name_key < @end ${where}
       ORDER BY name_key, parent LIMIT @limit`,
    );
  return {
    add: database.prepare<[ns: number, word: string, nameKey: string]>(
      'INSERT OR IGNORE INTO word (ns, word, name_key) VALUES (?, ?, ?)',
    ),
    drop: database.prepare<[WordRow]>(
      'DELETE FROM word WHERE ns = @ns AND word = @word AND name_key = @nameKey',
    ),
    words: database.prepare<[WordRow & { limit: number }], WordRow>(
      `SELECT ns, word, name_key AS nameKey FROM word
       WHERE (ns, word, name_key) > (@ns, @word, @nameKey) ORDER BY ns, word, name_key LIMIT @limit`,
    ),
    names: database.prepare<[Range & { nameKey: string }], WordRow>(
      `SELECT ns, word, name_key AS nameKey FROM word
       WHERE ns = @ns AND (word, name_key) > (@word, @nameKey) AND word < @end
       ORDER BY word, name_key LIMIT @limit`,
    ),
    count: database.prepare<[Range], { names: number }>(
      `SELECT count(*) AS names FROM (
         SELECT 1 FROM word WHERE ns = @ns AND word >= @word AND word < @end LIMIT @limit)`,
    ),
    isUsed: database.prepare<[{ ns: number; nameKey: string }]>(
      `SELECT 1 FROM entry WHERE ns = @ns AND name_key = @nameKey
       UNION ALL SELECT 1 FROM deletion WHERE ns = @ns AND name_key = @nameKey AND NOT forgotten LIMIT 1`,
    ),
    entries: {
      named: named('entry'),
      changed: database.prepare<[Changed], ChangedRow>(
        `SELECT ns, seq, name_key AS nameKey, parent FROM entry INDEXED BY entry_change
         WHERE ns = @ns AND seq < @before ORDER BY seq DESC LIMIT @limit`,
      ),
      row: database.prepare<[Named], EntryRow>(
        `${SELECT_ENTRY} WHERE entry.ns = @ns AND entry.parent = @parent AND entry.name_key = @nameKey`,
      ),
    },
    deletions: {
      named: named('deletion', 'AND NOT forgotten'),
      // Of all namespaces, so that what it reads is bounded too.
      changed: database.prepare<[Changed], ChangedRow>(
        `SELECT ns, seq, name_key AS nameKey, parent FROM deletion INDEXED BY deletion_kept
         WHERE NOT forgotten AND seq < @before ORDER BY seq DESC LIMIT @limit`,
      ),
      row: database.prepare<[Named], DeletionRow>(
        `${SELECT_DELETION} WHERE ns = @ns AND parent = @parent AND name_key = @nameKey AND NOT forgotten`,
      ),
    },
  };
}
