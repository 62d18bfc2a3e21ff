/** Maximum number of tags of one item, as at the real service. */
export const TAGS_MAX = 20;

/** Tags of files and folders, by user. They belong to the item's id, and so survive moves. */
export interface Tags {
  /** Returns the tags of each item, in the order in which they were added. */
  of(accountId: string, itemIds: readonly string[]): Promise<readonly (readonly string[])[]>;
  /** Adds a tag; adding one again has no effect. */
  add(accountId: string, itemId: string, tag: string): Promise<'added' | 'too-many'>;
  /** Removes a tag. Returns whether the item had it. */
  remove(accountId: string, itemId: string, tag: string): Promise<boolean>;
}
