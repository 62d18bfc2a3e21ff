import type { BucketAccess } from '../storage/blocks/bucket/bucket-address.ts';
import type { Row, Table } from '../storage/postgres/tables.ts';
import type { DirectoryTable } from './directory-tables.ts';

/** Where a service has its data. */
export type ServicePlace =
  /** With `blocks`, new blocks are in a bucket. */
  | { readonly dataDirectory: string; readonly blocks?: BucketAccess | undefined }
  | { readonly metadata: string; readonly blocks: BucketAccess | { readonly folder: string } };

/** The SQL that a database understands. */
export type Dialect = 'sqlite' | 'postgres';

/** Rows of one state of a database. */
export interface Rows {
  readonly dialect: Dialect;
  /** Yields the rows of a query, at most `atOnce` together. */
  read(query: string, atOnce: number): AsyncIterable<readonly Row[]>;
}

/** The rows of a side. In a data directory they are in two files. */
export interface SideRows {
  readonly storage: Rows;
  readonly directory: Rows;
}

/** A block that is not in a row. */
export interface OuterBlock {
  readonly hash: Buffer;
  readonly sizeBytes: number;
  /** Its name at the source. */
  readonly name: string;
}

/** What all revisions and cursors of a service depend on. */
export interface ServiceKeys {
  readonly tag: string;
  readonly cursorKey: Buffer;
}

/** The service that is copied. Nothing in it is changed. */
export interface CopySource extends SideRows {
  readonly name: string;
  readonly keys: ServiceKeys;
  /** Yields all blocks that are not in rows; a block of several namespaces may come several times. */
  blocks(): AsyncIterable<OuterBlock>;
  /** Returns the bytes of a block, which have its hash. Throws `DamagedBlockError`. */
  read(block: OuterBlock): Promise<Buffer>;
  /** Begins to read the state of now; without a call, of the first read. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** A namespace's row, in the order of the columns in `NAMESPACE_COLUMNS`. */
export type NamespaceRow = readonly [
  id: number,
  name: string,
  limitBytes: number,
  usedBytes: number,
  horizon: number,
  tick: number,
  version: number,
  mark: string,
];

/** The tables of a target, in a transaction. */
export interface FilledTables extends SideRows {
  putNamespace(row: NamespaceRow): Promise<void>;
  /** Adds rows of a namespace. Those of blocks have a further value, the bytes of a small one. */
  put(table: Table, namespace: NamespaceRow, rows: readonly Row[]): Promise<void>;
  putInDirectory(table: DirectoryTable, rows: readonly Row[]): Promise<void>;
}

/** Where a service is copied to. Until `fill` has ended, nothing else opens it. */
export interface CopyTarget {
  readonly name: string;
  /** Whether an earlier attempt has stored the block. */
  has(block: OuterBlock): boolean;
  /** Stores a block. */
  keep(block: OuterBlock, bytes: Buffer): Promise<void>;
  /** Makes the stored blocks durable. */
  sync(): Promise<void>;
  /** Empties the tables and fills them, in one transaction, whose end is the end of the copy. */
  fill(keys: ServiceKeys, work: (tables: FilledTables) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}
