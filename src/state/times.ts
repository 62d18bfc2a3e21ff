/** Modification times that clients set after the fact; the service cannot change one of stored content. */
export interface Times {
  /** Of those ids that have one; for a file only while it has the revision the time was set for. */
  of(ids: readonly string[]): Promise<ReadonlyMap<string, SetTime>>;
  /** All ids that have one. */
  ids(): Promise<readonly string[]>;
  /** Whether no id has one. As cheap however many there are. */
  isEmpty(): Promise<boolean>;
  set(id: string, time: SetTime): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
}

export interface SetTime {
  /** `''` for a folder. */
  readonly rev: string;
  readonly modifiedMs: number;
}
