import { randomBytes, randomInt } from 'node:crypto';
import { foldName, freePath, type Path, pathOf } from '../../util/path.ts';

export interface Account {
  /** `dbid:` and 35 more characters. */
  readonly id: string;
  /** Digits: the namespace in which the account's paths begin, by default its home. */
  readonly namespace: string;
  /** Its team; absent for a person on their own. */
  readonly team?: Team;
  /** Address. Lookups ignore the case of the letters A to Z. */
  readonly email: string;
  readonly givenName: string;
  readonly surname: string;
  /** Whether the account may call `permanently_delete`. */
  readonly mayDeletePermanently: boolean;
  /** Quota of the home, in bytes. `undefined` for an account older than this field; its home has the quota. */
  readonly limitBytes?: number;
  /** Hash of the password for `/oauth2/authorize`. Nobody can sign in without one. */
  readonly passwordHash?: Uint8Array;
}

/** A member's view of a team: one space with a folder for each member, which is that member's home. */
export interface Team {
  readonly name: string;
  /** Digits: the namespace of the team's space, the root of each member. */
  readonly namespace: string;
  /** The member's home, as a namespace and as a folder of the space, like `/Ann Lee`. */
  readonly homeNamespace: string;
  readonly homePath: string;
}

/** Returns the account with its paths in its home. */
export function inHome(account: Account): Account {
  return { ...account, namespace: account.team?.homeNamespace ?? account.namespace };
}

/** Returns the account with its paths in its root, which is its home unless it is in a team. */
export function inRoot(account: Account): Account {
  return { ...account, namespace: account.team?.namespace ?? account.namespace };
}

/** Returns a path of the account's root as a path of the account; `undefined` if the account's paths do not reach it. */
export function pathFromRoot({ namespace, team }: Account, pathLower: string): string | undefined {
  if (namespace !== team?.homeNamespace) return pathLower;
  const home = foldName(team.homePath);
  return pathLower.startsWith(`${home}/`) ? pathLower.slice(home.length) : undefined;
}

export type NewAccount = Omit<Account, 'id' | 'namespace' | 'team'>;

/** The changeable fields of an account. */
export type AccountChange = Partial<Omit<NewAccount, 'email'>>;

export interface Accounts {
  /** Returns the account with this address. */
  withEmail(email: string): Promise<Account | undefined>;
  /** Returns the account with this id; it may have been removed. */
  find(id: string): Promise<Account | undefined>;
  /** Like `find`, for several ids; results in their order. */
  findAll(ids: readonly string[]): Promise<readonly (Account | undefined)[]>;
  /** Returns the account whose home is this namespace. */
  ofHome(namespace: string): Promise<Account | undefined>;
  /** Returns all accounts, sorted by address. */
  all(): Promise<readonly Account[]>;
  /**
   * Adds an account with a new address. The home at `namespace` is created at its first use, as a folder in the space of
   * `team` if one is named.
   */
  add(
    account: NewAccount & { readonly limitBytes: number },
    namespace: string,
    team?: string,
  ): Promise<Account>;
  change(id: string, change: AccountChange): Promise<void>;
  /** Gives an account that has no password one. Returns whether it had none. */
  addPassword(id: string, passwordHash: Uint8Array): Promise<boolean>;
  /** Removes an account with its consents and links. The service's housekeeping deletes the files later. */
  remove(id: string): Promise<void>;
  /** Returns the homes of removed accounts whose files may still exist. */
  abandonedHomes(): Promise<readonly string[]>;
  /** Records that the files of a removed account's home have been deleted. */
  forgetHome(namespace: string): Promise<void>;
}

/** Upper limit of namespace ids: an exact number in every client, and large enough to avoid collisions. */
const NAMESPACE_LIMIT = 2 ** 47;

/** Returns a random namespace id. */
export function newNamespace(): string {
  return String(randomInt(1, NAMESPACE_LIMIT));
}

/** Returns a random account id. */
export function newAccountId(): string {
  return `dbid:${randomBytes(27).toString('base64url').slice(0, 35)}`;
}

/** Returns the folder of a new member in the team's space, in which the folders in `taken` exist. */
export function freeHomePath(account: NewAccount, taken: readonly string[]): Path {
  const keys = new Set(taken.map(foldName));
  return freePath(homePathOf(account), (path) => !keys.has(foldName(path)));
}

function homePathOf({ givenName, surname, email }: NewAccount): Path {
  const name = `${givenName} ${surname}`.replace(/[/\\\p{Cc}]+/gu, ' ').trim();
  return pathOf([name === '' || /^\.+$/.test(name) ? email.replaceAll('/', '_') : name]);
}
