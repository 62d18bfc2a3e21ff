import { foldName } from '../util/path.ts';

/** The account, namespace and folder that a drive's state or journal belongs to. */
export interface Owner {
  /** The account's id at the service. */
  readonly accountId: string;
  /** The account's address, for messages. */
  readonly email: string;
  /**
   * The folder that is the drive's root; `''` for the account's whole home. In another namespace it begins with
   * `ns:NUMBER`, as in the API, so that a davgate from before namespaces sees another folder too.
   */
  readonly root: string;
}

/** The owners of all drives, by the drives' names. Durable. */
export interface Owners {
  /** Returns the owner of a drive's state; `undefined` if none has been stored. */
  get(drive: string): Promise<Owner | undefined>;
  set(drive: string, owner: Owner): Promise<void>;
}

/** Returns the owner in words, for messages. */
export function shownOwner({ accountId, email, root }: Owner): string {
  return `${email} (${accountId}${root === '' ? '' : `, folder ${root}`})`;
}

/** Returns whether both are the same account and folder. The service ignores letter case. */
export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.accountId === other.accountId && foldName(one.root) === foldName(other.root);
}

/** Returns a name for the tree of files that contains the owner's folder: its account and, except at home, the namespace. */
export function treeOf({ accountId, root }: Owner): string {
  const [namespace] = /^ns:\d+/.exec(root) ?? [];
  return namespace === undefined ? accountId : `${accountId} ${namespace}`;
}

/** Returns whether `owner` is stored already, so that nothing has to be written. */
export function isUnchanged(before: Owner | undefined, owner: Owner): boolean {
  const keys = ['accountId', 'email', 'root'] as const;
  return before !== undefined && keys.every((key) => before[key] === owner[key]);
}
