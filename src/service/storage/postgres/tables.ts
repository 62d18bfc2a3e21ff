/** How PostgreSQL stores a column. */
type ColumnType = 'bigint' | 'text' | 'bytea';

/** A table of a namespace: the rows in PostgreSQL, and their copy in SQLite, which has the same columns. */
export interface Table {
  readonly name: string;
  /** The columns that identify a row within its namespace. */
  readonly key: readonly string[];
  /** All columns, in order, without `ns`. */
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** Whether the table in SQLite has a column `ns`, and whether that is part of its key. */
  readonly ns: 'none' | 'column' | 'key';
  /** Whether PostgreSQL identifies a row by the hash of its key, in a column `place`: paths can be too long for its indexes. */
  readonly hasPlace: boolean;
}

/** A row's values, in the order of its table's columns. */
export type Row = readonly Value[];

export type Value = string | number | Uint8Array | null;

const PLACE = { parent: 'text', name_key: 'text', name: 'text', path: 'text', id: 'text' } as const;

/** All tables, those that others refer to first. Words of names are not among them: each copy derives its own. */
export const TABLES: readonly Table[] = [
  // In PostgreSQL the bytes of small blocks are a further column, which copies do not have.
  table('block', ['id'], { id: 'bigint', hash: 'bytea', size: 'bigint', inline: 'bigint' }),
  table('block_pieces', ['block'], { block: 'bigint', checksums: 'bytea' }),
  table('block_name', ['block'], { block: 'bigint', name: 'text' }),
  table('content', ['id'], { id: 'bigint', hash: 'text', size: 'bigint' }),
  table('content_block', ['content', 'position'], { content: 'bigint', position: 'bigint', block: 'bigint' }),
  withNs('holding', ['content'], { content: 'bigint', revisions: 'bigint', files: 'bigint' }),
  withNs('revision', ['number'], {
    number: 'bigint',
    ...PLACE,
    content: 'bigint',
    client_ms: 'bigint',
    server_ms: 'bigint',
  }),
  placed('entry', { ...PLACE, seq: 'bigint', revision: 'bigint', returned: 'bigint' }),
  placed('deletion', {
    ...PLACE,
    seq: 'bigint',
    was_folder: 'bigint',
    implied: 'bigint',
    forgotten: 'bigint',
    deleted_ms: 'bigint',
  }),
  withNs('removal', ['seq'], {
    seq: 'bigint',
    key: 'text',
    deleted_ms: 'bigint',
    forever: 'bigint',
    phase: 'bigint',
    at_parent: 'text',
    at_name: 'text',
    at_number: 'bigint',
    moved: 'bigint',
  }),
  withNs('staging', ['first'], {
    first: 'bigint',
    last: 'bigint',
    copies: 'bigint',
    charged_bytes: 'bigint',
    published: 'bigint',
    at_number: 'bigint',
  }),
  withNs('doomed', ['number'], { number: 'bigint', content: 'bigint' }),
  {
    ...table('session', ['id'], {
      id: 'text',
      concurrent: 'bigint',
      size: 'bigint',
      closed: 'bigint',
      started_ms: 'bigint',
    }),
    ns: 'column',
  },
  table('session_piece', ['session', 'start'], { session: 'text', start: 'bigint', block: 'bigint' }),
];

function table(name: string, key: readonly string[], columns: Table['columns']): Table {
  return { name, key, columns, ns: 'none', hasPlace: false };
}

function withNs(name: string, key: readonly string[], columns: Table['columns']): Table {
  return { ...table(name, key, columns), ns: 'key' };
}

function placed(name: string, columns: Table['columns']): Table {
  return { ...withNs(name, ['parent', 'name_key'], columns), hasPlace: true };
}

/** Returns the names of a table's columns, quoted. */
export function columnsOf({ columns }: Table): readonly string[] {
  return Object.keys(columns).map(quoted);
}

export function quoted(column: string): string {
  return `"${column}"`;
}
