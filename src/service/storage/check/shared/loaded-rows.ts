import type { PoolClient } from 'pg';
import { errorCodeOf } from '../../../../util/error-code.ts';
import { isSqliteError } from '../../../../util/sqlite/group-commit.ts';
import { verified } from '../../blocks/block-store.ts';
import { DamagedBlockError } from '../../errors.ts';
import type { NamespaceRow } from '../../postgres/namespace-change.ts';
import type { NamespaceCopy } from '../../postgres/namespace-copy.ts';
import { rowsIn } from '../../postgres/namespace-rows.ts';
import { placeOfRow } from '../../postgres/stored-commits.ts';
import { type Row, TABLES, type Table } from '../../postgres/tables.ts';
import { type Damage, rowDamage } from '../damage.ts';

/** Rows with bytes that are read at once: each may have 64 KiB. */
const BYTES_ROWS = 100;
const ROWS = 2000;

/** Maximum number of rows that cannot be loaded, and are told one by one. */
const TOLD_MAX = 100;

/** A row whose key in PostgreSQL is not that of its path, so that a change of the path makes a second row. */
export interface WrongPlace {
  readonly table: string;
  readonly place: Buffer;
  readonly right: Buffer;
  readonly path: string;
}

/** A small block whose bytes are damaged. */
export interface WrongBytes {
  readonly id: number;
  readonly hash: Buffer;
  readonly why: string;
}

/** What loading the rows of a namespace has shown. */
export interface Loaded {
  /** Rows that the copy cannot have. */
  readonly refused: readonly Damage[];
  readonly wrongPlaces: readonly WrongPlace[];
  readonly wrongBytes: readonly WrongBytes[];
  /** Number and size of the small blocks, whose bytes have been checked. */
  readonly blocks: number;
  readonly bytes: number;
}

/** Loads the rows of a namespace into a copy, however damaged they are, and checks what a copy does not have. */
export async function loadedRows(
  client: PoolClient,
  copy: NamespaceCopy,
  namespace: NamespaceRow,
): Promise<Loaded> {
  const loading = new Loading(copy, namespace);
  for (const table of TABLES) {
    const [further, count] = furtherOf(table);
    for await (const rows of rowsIn(client, namespace.id, table, further, count)) loading.take(table, rows);
  }
  copy.apply({ namespace, rows: new Map(), gone: new Map() });
  return loading.result;
}

/** Returns the columns of a table that copies do not have, and how many rows are read at once. */
function furtherOf({ name, hasPlace }: Table): readonly [string[], number] {
  if (name === 'block') return [['bytes'], BYTES_ROWS];
  return [hasPlace ? ['place'] : [], ROWS];
}

class Loading {
  readonly #refused: Damage[] = [];
  readonly #wrongPlaces: WrongPlace[] = [];
  readonly #wrongBytes: WrongBytes[] = [];
  #untold = 0;
  #blocks = 0;
  #bytes = 0;

  constructor(
    private readonly copy: NamespaceCopy,
    private readonly namespace: NamespaceRow,
  ) {}

  get result(): Loaded {
    const more = this.#untold === 0 ? [] : [rowDamage(`… and ${this.#untold} more rows cannot be used`)];
    return {
      refused: [...this.#refused, ...more],
      wrongPlaces: this.#wrongPlaces,
      wrongBytes: this.#wrongBytes,
      blocks: this.#blocks,
      bytes: this.#bytes,
    };
  }

  take(table: Table, rows: readonly Row[]): void {
    if (table.name === 'block') for (const row of rows) this.#checkBytes(row);
    if (table.hasPlace) for (const row of rows) this.#checkPlace(table, row);
    if (this.#put(table, rows) === undefined) return;
    for (const row of rows) {
      const why = this.#put(table, [row]);
      if (why !== undefined) this.#refuse(table, row, why);
    }
  }

  /** Puts rows into the copy. Returns why it does not take them. */
  #put(table: Table, rows: readonly Row[]): string | undefined {
    try {
      this.copy.apply(
        { namespace: this.namespace, rows: new Map([[table.name, rows]]), gone: new Map() },
        false,
      );
      return undefined;
    } catch (failure) {
      if (!isOfValues(failure)) throw failure;
      return failure.message;
    }
  }

  #refuse(table: Table, row: Row, why: string): void {
    if (this.#refused.length === TOLD_MAX) {
      this.#untold += 1;
      return;
    }
    const names = Object.keys(table.columns);
    const key = table.key.map((column) => `${column} ${String(row[names.indexOf(column)])}`).join(', ');
    const path = row[names.indexOf('path')];
    this.#refused.push(
      rowDamage(`its row in the table ${table.name} (${key}) cannot be used: ${why}`, {
        namespace: this.namespace.name,
        path: typeof path === 'string' ? path : '',
      }),
    );
  }

  #checkBytes([id, hash, sizeBytes, inline, bytes]: Row): void {
    if (!inline || typeof id !== 'number' || typeof sizeBytes !== 'number' || !Buffer.isBuffer(hash)) return;
    this.#blocks += 1;
    this.#bytes += sizeBytes;
    const why = wrongIn({ hash, sizeBytes }, bytes);
    if (why !== undefined) this.#wrongBytes.push({ id, hash, why });
  }

  #checkPlace(table: Table, row: Row): void {
    const place = row.at(-1);
    const right = placeOfRow(table, row);
    if (!Buffer.isBuffer(place) || place.equals(right)) return;
    const path = String(row[Object.keys(table.columns).indexOf('path')]);
    this.#wrongPlaces.push({ table: table.name, place, right, path });
  }
}

/** Returns what is wrong with the bytes of a small block. */
function wrongIn(
  block: { readonly hash: Buffer; readonly sizeBytes: number },
  bytes: unknown,
): string | undefined {
  if (!Buffer.isBuffer(bytes)) return 'its bytes are not in the database';
  try {
    verified(block, bytes);
    return undefined;
  } catch (failure) {
    if (failure instanceof DamagedBlockError) return failure.why;
    throw failure;
  }
}

/** Whether SQLite does not take a value, as one of another type or a second row with the same hash. */
function isOfValues(failure: unknown): failure is Error {
  if (failure instanceof TypeError || failure instanceof RangeError) return true;
  return isSqliteError(failure) && /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG)/.test(errorCodeOf(failure));
}
