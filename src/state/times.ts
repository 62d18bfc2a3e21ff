/** The modification times that clients have set. The service cannot change the time of stored content. Durable. */
export interface Times {
  /** Returns the times of those ids that have one. The caller compares `rev`. */
  of(ids: readonly string[]): Promise<ReadonlyMap<string, SetTime>>;
  /** Returns all ids that have a time. */
  ids(): Promise<readonly string[]>;
  /** Whether no id has a time. Its cost does not depend on their number. */
  isEmpty(): Promise<boolean>;
  set(id: string, time: SetTime): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
}

export interface SetTime {
  /** The content that the time was set for: content hash or revision of a file, `''` for a folder. */
  readonly rev: string;
  readonly modifiedMs: number;
}
