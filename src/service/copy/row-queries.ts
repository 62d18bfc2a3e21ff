import { columnsOf, quoted, TABLES, type Table } from '../storage/postgres/tables.ts';
import type { DirectoryTable } from './directory-tables.ts';
import type { Dialect } from './sides.ts';

/** The tables of a namespace that are copied. The names of blocks are the target's own. */
export const COPIED_TABLES: readonly Table[] = TABLES.filter(({ name }) => name !== 'block_name');

/** The columns of `NamespaceRow`. A data directory has no numbers of commits. */
export function namespacesQuery(dialect: Dialect): string {
  const columns = 'id, name, limit_bytes, used_bytes, horizon, tick';
  return dialect === 'sqlite'
    ? `SELECT ${columns}, 0, '' FROM namespace ORDER BY id`
    : `SELECT ${columns}, version, mark FROM davgate.namespace ORDER BY id`;
}

/** Returns a query for what must be equal of all namespaces. */
export function comparedNamespaces(dialect: Dialect): string {
  return `SELECT id, name, limit_bytes, used_bytes, horizon, tick FROM ${dialect === 'sqlite' ? '' : 'davgate.'}namespace`;
}

/** Returns a query for a table of the directory. */
export function directoryQuery({ name, columns, computed }: DirectoryTable, dialect: Dialect): string {
  const values = Object.entries(columns).map(([column, type]) => {
    const value = computed?.[dialect]?.[column] ?? quoted(column);
    return type === 'boolean' ? `CAST(${value} AS integer)` : value;
  });
  return `SELECT ${values.join(', ')} FROM ${dialect === 'sqlite' ? name : `davgate.${name}`}`;
}

/** Queries for the rows of one namespace. */
export class NamespaceQueries {
  constructor(
    private readonly ns: number,
    private readonly dialect: Dialect,
  ) {}

  /** Returns a query for the rows of a table as they are. That of blocks ends with the bytes of a small one. */
  copied(table: Table): string {
    const columns = [...columnsOf(table), ...(table.name === 'block' ? [this.#bytes] : [])];
    return this.#select(table, columns);
  }

  /** Returns a query for what must be equal: hashes in place of the numbers of contents and blocks, which may differ. */
  compared(table: Table): string {
    const isNumbered = table.name === 'block' || table.name === 'content';
    const columns = columnsOf(table).flatMap((column) => {
      if (column === quoted('content') || column === quoted('block')) return [this.#hash(column)];
      return isNumbered && column === quoted('id') ? [] : [column];
    });
    return this.#select(table, [...columns, ...(table.name === 'block' ? [this.#bytes] : [])]);
  }

  /** Returns a query for a listing of all files and folders, by what refers to what. */
  get listing(): string {
    return `SELECT copied.path, copied.id, copied.seq, file.number, file.server_ms, whole.hash, whole.size
      FROM ${this.#of('entry')} AS copied
      LEFT JOIN ${this.#of('revision')} AS file ON file.number = copied.revision
      LEFT JOIN ${this.#of('content')} AS whole ON whole.id = file.content`;
  }

  #select(table: Table, columns: readonly string[]): string {
    const where = this.#condition(table.name);
    return `SELECT ${columns.join(', ')} FROM ${this.#of(table.name)} AS copied${where === undefined ? '' : ` WHERE ${where}`}`;
  }

  /** What nothing refers to, since a reader had it open at the end, is left out. */
  #condition(table: string): string | undefined {
    switch (table) {
      case 'content':
        return `copied.id IN (${this.#held})`;
      case 'content_block':
        return `copied.content IN (${this.#held})`;
      case 'block':
        return `copied.id IN (${this.#used})`;
      case 'block_pieces':
        return `copied.block IN (${this.#used})`;
      case 'session_piece':
        return `copied.session IN (${this.#sessions})`;
      default:
        return undefined;
    }
  }

  get #held(): string {
    return `SELECT held.content FROM ${this.#of('holding')} AS held`;
  }

  get #sessions(): string {
    return `SELECT running.id FROM ${this.#of('session')} AS running`;
  }

  get #used(): string {
    return `SELECT part.block FROM ${this.#of('content_block')} AS part WHERE part.content IN (${this.#held})
      UNION SELECT piece.block FROM ${this.#of('session_piece')} AS piece WHERE piece.session IN (${this.#sessions})`;
  }

  get #bytes(): string {
    return this.dialect === 'sqlite'
      ? '(SELECT block_bytes.bytes FROM block_bytes WHERE block_bytes.block = copied.id)'
      : 'bytes';
  }

  #hash(column: string): string {
    const table = column === quoted('content') ? 'content' : 'block';
    return `(SELECT named.hash FROM ${this.#of(table)} AS named WHERE named.id = copied.${table})`;
  }

  /** In a data directory, contents and blocks belong to all namespaces. */
  #of(name: string): string {
    if (this.dialect === 'postgres') return `(SELECT * FROM davgate.${name} WHERE ns = ${this.ns})`;
    const isShared = TABLES.find((table) => table.name === name)?.ns === 'none';
    return isShared ? name : `(SELECT * FROM ${name} WHERE ns = ${this.ns})`;
  }
}
