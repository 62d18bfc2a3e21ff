/** A dead property (RFC 4918 §4.3) of one resource. */
export interface DeadProperty {
  readonly namespace: string;
  readonly name: string;
  /** The whole property element as standalone XML, with its own namespace declarations and `xml:lang`. */
  readonly xml: string;
}

export type PropertyChange =
  | { readonly set: DeadProperty }
  | { readonly remove: { readonly namespace: string; readonly name: string } };

/**
 * The dead properties of one drive, by the id of the file or folder, so that they survive moves by any client. Durable.
 */
export interface DeadProperties {
  /** Returns the properties of those ids that have some. Cheap for ids without. */
  of(ids: readonly string[]): Promise<ReadonlyMap<string, readonly DeadProperty[]>>;
  /** Returns all ids that have properties. */
  ids(): Promise<readonly string[]>;
  /** Whether no id has properties. Its cost does not depend on their number. */
  isEmpty(): Promise<boolean>;
  /** Makes all changes, in order, or none. Throws `PropertiesFull` beyond `PROPERTIES_BYTES_MAX`. */
  change(id: string, changes: readonly PropertyChange[]): Promise<void>;
  /** Replaces the properties of `to` by those of `from`. */
  copy(from: string, to: string): Promise<void>;
  /** Moves the properties of `from` to `to`. */
  rename(from: string, to: string): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
  /** Returns a number that grows with each change in this drive, so that answers built from properties can be cached. */
  version(): Promise<number>;
}

/**
 * Maximum size of the properties of one resource, in bytes. A change beyond it is refused as a whole. An answer has those of
 * some hundred resources in memory.
 */
export const PROPERTIES_BYTES_MAX = 64 * 1024;

export class PropertiesFull extends Error {
  override readonly name = 'PropertiesFull';
}
