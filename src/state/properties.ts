/** A dead property (RFC 4918 §4.3) of one resource. */
export interface DeadProperty {
  readonly namespace: string;
  readonly name: string;
  /** The whole property element as XML that stands by itself: own namespace declarations, `xml:lang`. */
  readonly xml: string;
}

export type PropertyChange =
  | { readonly set: DeadProperty }
  | { readonly remove: { readonly namespace: string; readonly name: string } };

/**
 * Dead properties of one drive, by the id of the file or folder, so that they stay with it wherever it is
 * moved and whoever moves it. Durable.
 */
export interface DeadProperties {
  /** Of those ids that have any. Cheap for ids that have none. */
  of(ids: readonly string[]): Promise<ReadonlyMap<string, readonly DeadProperty[]>>;
  /** All ids that have any. */
  ids(): Promise<readonly string[]>;
  /** Whether no id has any. As cheap however many there are. */
  isEmpty(): Promise<boolean>;
  /** All changes, in order, or none. Throws `PropertiesFull` when a limit would be passed. */
  change(id: string, changes: readonly PropertyChange[]): Promise<void>;
  /** Gives `to` the properties that `from` has, in place of its own. */
  copy(from: string, to: string): Promise<void>;
  /** What was known as `from` is now known as `to`. */
  rename(from: string, to: string): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
  /** Grows with each change in this drive: what was built from properties is fresh while it stands still. */
  version(): Promise<number>;
}

/** The properties of one resource may take this much together; more is refused, and nothing changed. */
export const PROPERTIES_BYTES_MAX = 1024 * 1024;

export class PropertiesFull extends Error {
  override readonly name = 'PropertiesFull';
}
