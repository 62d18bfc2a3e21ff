import type { Row } from './tables.ts';

/** The row of a namespace. */
export interface NamespaceRow {
  readonly id: number;
  readonly name: string;
  /** The number of its commits. */
  readonly version: number;
  /** Tells its last commit from every other one; `''` before the first. */
  readonly mark: string;
  readonly limitBytes: number;
  readonly usedBytes: number;
  readonly horizon: number;
  readonly tick: number;
}

/** The namespace that a copy is of, and its last commit there; `undefined` until the copy has been loaded. */
export interface CopiedState {
  /** The number alone may be that of another namespace, in a promoted database that lacked this one. */
  readonly name: string | undefined;
  readonly version: number | undefined;
  readonly mark: string;
}

/** What changed in a namespace up to a version. */
export interface NamespaceChange {
  /** The namespace afterwards. */
  readonly namespace: NamespaceRow;
  /** New and changed rows, by table. */
  readonly rows: ReadonlyMap<string, readonly Row[]>;
  /** The keys of removed rows, by table. */
  readonly gone: ReadonlyMap<string, readonly Key[]>;
}

/** The values of a row's key columns. */
export type Key = readonly (string | number)[];
