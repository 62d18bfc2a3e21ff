import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { NameIndex } from '../tree/name-index.ts';
import type { CopiedState, Key, NamespaceChange, NamespaceRow } from './namespace-change.ts';
import { columnsOf, quoted, type Row, TABLES, type Table } from './tables.ts';

/** The statements that write rows of one table. */
interface Writer {
  readonly name: string;
  readonly put: (row: Row) => void;
  readonly drop: (key: Key) => void;
}

/** Tables in which no two rows have the same hash. */
const HASHED = new Set(['block', 'content']);

/** The rows of one namespace in a SQLite database, copied from PostgreSQL. They can be read at any time. */
export class NamespaceCopy {
  readonly #writers: readonly Writer[];
  readonly #apply: (change: NamespaceChange) => void;
  readonly #find: () => Omit<NamespaceRow, 'version' | 'mark'> | undefined;
  readonly #bytes: () => number | undefined;
  #version: number | undefined;
  #mark = '';
  #name: string | undefined;
  #limitBytes: number | undefined;
  #isStale = false;

  constructor(
    private readonly database: SqliteDatabase,
    names: NameIndex,
    readonly id: number,
    private readonly onStale: () => void,
  ) {
    this.#writers = TABLES.map((table) => writerOf(database, table, id, names));
    const find = database.prepare<[number], Omit<NamespaceRow, 'version' | 'mark'>>(
      `SELECT id, name, limit_bytes AS limitBytes, used_bytes AS usedBytes, horizon, tick
       FROM namespace WHERE id = ?`,
    );
    this.#find = () => find.get(id);
    const size = database
      .prepare<[], number>('SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()')
      .pluck();
    this.#bytes = () => size.get();
    const putNamespace = database.prepare<[NamespaceRow]>(
      `INSERT INTO namespace (id, name, limit_bytes, used_bytes, horizon, tick)
       VALUES (@id, @name, @limitBytes, @usedBytes, @horizon, @tick)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, limit_bytes = excluded.limit_bytes, used_bytes = excluded.used_bytes,
         horizon = excluded.horizon, tick = excluded.tick`,
    );
    this.#apply = database.transaction((change: NamespaceChange) => {
      this.#write(change);
      putNamespace.run(change.namespace);
    });
  }

  /** The number of the last commit that it has; `undefined` until it has been loaded. */
  get version(): number | undefined {
    return this.#version;
  }

  /** Whether it is of this namespace, and has its last commit. */
  has({ name, version, mark }: Pick<NamespaceRow, 'name' | 'version' | 'mark'>): boolean {
    return this.#name === name && this.#version === version && this.#mark === mark;
  }

  get state(): CopiedState {
    return { name: this.#name, version: this.#version, mark: this.#mark };
  }

  /** What tells its last commit from every other one. */
  get mark(): string {
    return this.#mark;
  }

  /** The limit of the namespace, in bytes; `undefined` until it has been loaded. */
  get limitBytes(): number | undefined {
    return this.#limitBytes;
  }

  /** Its size, in bytes. */
  get bytes(): number {
    return this.#bytes() ?? 0;
  }

  /** Returns the namespace as it is here. */
  get namespace(): NamespaceRow {
    const row = this.#find();
    if (!row) throw new Error(`namespace ${this.id} has not been loaded`);
    return { ...row, version: this.#version ?? 0, mark: this.#mark };
  }

  /** Removes all rows, to load them again. */
  clear(): void {
    for (const { name } of [...TABLES].reverse()) this.database.exec(`DELETE FROM ${name}`);
  }

  /** Notes that it can no longer be brought up to date: another copy has to be loaded. */
  giveUp(): void {
    this.#isStale = true;
    this.onStale();
  }

  get isStale(): boolean {
    return this.#isStale;
  }

  /** Takes over a change. The rows may come in several pieces, of which only the last one sets the version. */
  apply(change: NamespaceChange, isLast = true): void {
    this.#apply(change);
    if (!isLast) return;
    this.#version = change.namespace.version;
    this.#mark = change.namespace.mark;
    this.#name = change.namespace.name;
    this.#limitBytes = change.namespace.limitBytes;
  }

  #write({ rows, gone }: NamespaceChange): void {
    for (const { name, drop } of this.#writers) {
      for (const key of gone.get(name) ?? []) drop(key);
      // A row may have the hash that another one of these had before.
      if (HASHED.has(name)) for (const [id] of rows.get(name) ?? []) drop([Number(id)]);
    }
    for (const { name, put } of this.#writers) for (const row of rows.get(name) ?? []) put(row);
  }
}

/** A row that other rows refer to keeps its place: a replaced one would take them along. */
function writerOf(database: SqliteDatabase, table: Table, ns: number, names: NameIndex): Writer {
  const { name } = table;
  const nsColumn = table.ns === 'none' ? [] : ['ns'];
  const nsKey = table.ns === 'key' ? ['ns'] : [];
  const columns = columnsOf(table);
  const key = table.key.map(quoted);
  const rest = columns.filter((column) => !key.includes(column));
  const changes = rest.map((column) => `${column} = excluded.${column}`).join(', ');
  const put = database.prepare(
    `INSERT INTO ${name} (${[...nsColumn, ...columns].join(', ')})
     VALUES (${[...nsColumn.map(() => ns), ...columns.map(() => '?')].join(', ')})
     ON CONFLICT (${[...nsKey, ...key].join(', ')}) DO ${rest.length > 0 ? `UPDATE SET ${changes}` : 'NOTHING'}`,
  );
  const drop = database.prepare(
    `DELETE FROM ${name} WHERE ${[...nsColumn.map(() => `ns = ${ns}`), ...key.map((column) => `${column} = ?`)].join(' AND ')}`,
  );
  const nameKey = table.hasPlace ? Object.keys(table.columns).indexOf('name_key') : -1;
  return {
    name,
    put(row) {
      put.run(...row.slice(0, columns.length));
      if (nameKey >= 0) names.add(ns, String(row[nameKey]));
    },
    drop(key) {
      drop.run(...key);
    },
  };
}
