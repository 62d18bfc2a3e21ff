import { foldName } from '../util/path.ts';

/** Whose files the state or the journal of a drive is about. */
export interface Owner {
  /** The account's id at the service. */
  readonly accountId: string;
  /** What people know the account by. */
  readonly email: string;
  /** The account's folder that is the drive's root; `''` for the whole account. */
  readonly root: string;
}

/** The owners of all drives, by the drives' names. Durable. */
export interface Owners {
  /** `undefined` where none was ever noted. */
  get(drive: string): Promise<Owner | undefined>;
  set(drive: string, owner: Owner): Promise<void>;
}

/** For people. */
export function shownOwner({ accountId, email, root }: Owner): string {
  return `${email} (${accountId}${root === '' ? '' : `, folder ${root}`})`;
}

/** Whether what waits for one may be sent to the other. Letter case is of no matter to the service. */
export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.accountId === other.accountId && foldName(one.root) === foldName(other.root);
}

/** Whether all that is noted of an owner is as it was: there is nothing to write then. */
export function isUnchanged(before: Owner | undefined, owner: Owner): boolean {
  const keys = ['accountId', 'email', 'root'] as const;
  return before !== undefined && keys.every((key) => before[key] === owner[key]);
}
