import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { columnsOf, quoted, type Row, type Table, type Value } from '../storage/postgres/tables.ts';
import { NameIndex } from '../storage/tree/name-index.ts';
import type { DirectoryTable } from './directory-tables.ts';
import type { NamespaceRow } from './sides.ts';

type Put = (row: Row) => void;

/** Tables whose rows belong to all namespaces in a data directory: another one may have brought an equal row. */
const SHARED = new Set(['content_block', 'block_pieces']);

/**
 * Writes the tables of a data directory. Equal blocks and contents have one row there, so they get other numbers than in a
 * database where each namespace has its own.
 */
export class SqliteTables {
  readonly #names: NameIndex;
  /** By the namespace's own numbers. */
  #blocks = new Map<Value, number>();
  #contents = new Map<Value, number>();
  #ns = 0;
  readonly #puts = new Map<string, Put>();

  constructor(
    private readonly storage: SqliteDatabase,
    private readonly directory: SqliteDatabase,
    /** Returns the name of a block in a bucket; `undefined` for one in a file. */
    private readonly nameOf: (hash: Buffer) => string | undefined,
  ) {
    this.#names = new NameIndex(storage);
  }

  putNamespace([id, name, limitBytes, usedBytes, horizon, tick]: NamespaceRow): void {
    this.storage
      .prepare(
        'INSERT INTO namespace (id, name, limit_bytes, used_bytes, horizon, tick) VALUES (?, ?, ?, ?, ?, ?)',
      )
      .run(id, name, limitBytes, usedBytes, horizon, tick);
  }

  put(table: Table, [ns]: NamespaceRow, rows: readonly Row[]): void {
    if (ns !== this.#ns) {
      this.#ns = ns;
      this.#blocks = new Map();
      this.#contents = new Map();
      this.#puts.clear();
    }
    const put = this.#puts.get(table.name) ?? this.#putOf(table);
    this.#puts.set(table.name, put);
    for (const row of rows) put(row);
  }

  #putOf(table: Table): Put {
    if (table.name === 'block') return this.#putBlock();
    if (table.name === 'content') return this.#putContent();
    const columns = Object.keys(table.columns);
    const nsColumn = table.ns === 'none' ? [] : ['ns'];
    const names = [...nsColumn, ...columnsOf(table)];
    const values = [...nsColumn.map(() => String(this.#ns)), ...columns.map(() => '?')];
    const insert = this.storage.prepare(
      `INSERT ${SHARED.has(table.name) ? 'OR IGNORE ' : ''}INTO ${table.name} (${names.join(', ')}) VALUES (${values.join(', ')})`,
    );
    const [content, block] = [columns.indexOf('content'), columns.indexOf('block')];
    const nameKey = table.hasPlace ? columns.indexOf('name_key') : -1;
    return (row) => {
      insert.run(
        ...row.map((value, index) => {
          if (index === content) return this.#contents.get(value) ?? null;
          return index === block ? (this.#blocks.get(value) ?? null) : value;
        }),
      );
      if (nameKey >= 0) this.#names.add(this.#ns, String(row[nameKey]));
    };
  }

  #putBlock(): Put {
    const insert = this.storage.prepare(
      'INSERT INTO block (hash, size, inline) VALUES (?, ?, ?) ON CONFLICT (hash) DO NOTHING',
    );
    const find = this.storage
      .prepare<[Value | undefined], number>('SELECT id FROM block WHERE hash = ?')
      .pluck();
    const addBytes = this.storage.prepare('INSERT INTO block_bytes (block, bytes) VALUES (?, ?)');
    const addName = this.storage.prepare('INSERT INTO block_name (block, name) VALUES (?, ?)');
    return ([number = null, hash, size, inline, bytes]) => {
      const isNew = insert.run(hash, size, inline).changes > 0;
      const id = find.get(hash) ?? 0;
      this.#blocks.set(number, id);
      if (!isNew) return;
      if (inline === 1) addBytes.run(id, bytes);
      const name = inline === 1 ? undefined : this.nameOf(hash as Buffer); // the type of the column
      if (name !== undefined) addName.run(id, name);
    };
  }

  #putContent(): Put {
    const insert = this.storage.prepare(
      'INSERT INTO content (hash, size) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING',
    );
    const find = this.storage
      .prepare<[Value | undefined], number>('SELECT id FROM content WHERE hash = ?')
      .pluck();
    return ([number = null, hash, size]) => {
      insert.run(hash, size);
      this.#contents.set(number, find.get(hash) ?? 0);
    };
  }

  putInDirectory({ name, columns, inSqlite }: DirectoryTable, rows: readonly Row[]): void {
    const names = Object.keys(columns);
    const written: NonNullable<DirectoryTable['inSqlite']> =
      inSqlite ?? names.map((column) => ({ column, from: column }));
    const values = written.map(({ value }) => value ?? '?');
    const insert = this.directory.prepare(
      `INSERT INTO ${name} (${written.map(({ column }) => quoted(column)).join(', ')}) VALUES (${values.join(', ')})`,
    );
    const places = written.map(({ from }) => names.indexOf(from));
    for (const row of rows) insert.run(...places.map((place) => row[place]));
  }
}
