import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Key } from './namespace-change.ts';
import { columnsOf, quoted, type Row, TABLES, type Table, type Value } from './tables.ts';

/** The changed rows, and the keys of removed ones, by table. */
export interface Recorded {
  readonly rows: ReadonlyMap<string, readonly Row[]>;
  readonly gone: ReadonlyMap<string, readonly Key[]>;
}

/** Records which rows of a copy a transaction changes, until it is rolled back. */
export class ChangeRecorder {
  readonly #start: () => void;
  readonly #tables: readonly { readonly name: string; readonly noted: () => readonly Noted[] }[];

  /** `ns` is the number of the only namespace in the copy. */
  constructor(database: SqliteDatabase, ns: number) {
    database.exec('CREATE TEMP TABLE recording (is_on INTEGER)');
    const start = database.prepare('INSERT INTO recording VALUES (1)');
    this.#start = () => {
      start.run();
    };
    this.#tables = TABLES.map((table) => ({ name: table.name, noted: noteIn(database, table, ns) }));
  }

  /** Begins to record. */
  start(): void {
    this.#start();
  }

  recorded(): Recorded {
    const rows = new Map<string, readonly Row[]>();
    const gone = new Map<string, readonly Key[]>();
    for (const { name, noted } of this.#tables) {
      const all = noted();
      const kept = all.flatMap(({ row }) => (row ? [row] : []));
      if (kept.length > 0) rows.set(name, kept);
      const removed = all.filter(({ row }) => row === undefined);
      if (removed.length > 0)
        gone.set(
          name,
          removed.map(({ key }) => key),
        );
    }
    return { rows, gone };
  }
}

/** A row that was written or removed; `row` is what it is now. */
interface Noted {
  readonly key: Key;
  readonly row: Row | undefined;
}

/** Creates triggers that note the keys of changed rows. Returns a function that reads these rows. */
function noteIn(database: SqliteDatabase, table: Table, ns: number): () => readonly Noted[] {
  const { name } = table;
  const key = table.key.map(quoted);
  const notes = `noted_${name}`;
  database.exec(
    `CREATE TEMP TABLE ${notes} (${key.join(', ')}, PRIMARY KEY (${key.join(', ')})) WITHOUT ROWID`,
  );
  for (const [event, row] of EVENTS)
    database.exec(
      `CREATE TEMP TRIGGER ${notes}_${event} AFTER ${event} ON main.${name} WHEN EXISTS (SELECT 1 FROM recording)
       BEGIN INSERT OR IGNORE INTO ${notes} VALUES (${key.map((column) => `${row}.${column}`).join(', ')}); END`,
    );
  const columns = columnsOf(table).map((column) => `${name}.${column}`);
  // In PostgreSQL the bytes of a small block are in its row.
  if (name === 'block') columns.push('(SELECT bytes FROM block_bytes WHERE block = block.id)');
  const [first = ''] = table.key;
  // Without the number SQLite would read the whole table to look up one row.
  const isSame = [
    ...(table.ns === 'key' ? [`${name}.ns = ${ns}`] : []),
    ...key.map((column) => `${name}.${column} = ${notes}.${column}`),
  ].join(' AND ');
  const select = database
    .prepare<[], Value[]>(
      `SELECT ${key.map((column) => `${notes}.${column}`).join(', ')}, ${name}.${quoted(first)} IS NULL, ${columns.join(', ')}
       FROM ${notes} LEFT JOIN main.${name} ON ${isSame}`,
    )
    .raw();
  return () =>
    select.all().map((values) => ({
      key: values.slice(0, key.length).map((value) => (typeof value === 'number' ? value : String(value))),
      row: values[key.length] === 1 ? undefined : values.slice(key.length + 1),
    }));
}

/** The events of a trigger, and the row that has the key. A key never changes. */
const EVENTS = [
  ['INSERT', 'NEW'],
  ['UPDATE', 'NEW'],
  ['DELETE', 'OLD'],
] as const;
