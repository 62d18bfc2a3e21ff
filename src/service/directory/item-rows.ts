/** A row that belongs to a file or folder, and is removed once the item cannot be restored. */
export interface ItemRow {
  /** Larger for each later row. */
  readonly sequence: number;
  readonly accountId: string;
  readonly itemId: string;
}

/** The rows of one kind that belong to items, for housekeeping: tags, copy references or links. */
export interface ItemRows {
  /** Returns rows of all accounts after the one numbered `afterSequence`, oldest first. */
  all(afterSequence: number, limit: number): Promise<readonly ItemRow[]>;
  forget(row: ItemRow): Promise<void>;
}
