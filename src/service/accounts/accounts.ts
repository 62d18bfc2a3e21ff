import { randomBytes, randomInt } from 'node:crypto';
import { foldName, freePath, type Path, pathOf } from '../../util/path.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';

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

export type NewAccount = Omit<Account, 'id' | 'namespace' | 'team'>;

/** The changeable fields of an account. */
export type AccountChange = Partial<Omit<NewAccount, 'email'>>;

export interface Accounts {
  /** Returns the account with this address. */
  withEmail(email: string): Account | undefined;
  /** Returns the account of a token or link. Throws if it does not exist, which would be an internal error. */
  withId(id: string): Account;
  /** Returns the account with this id; it may have been removed. */
  find(id: string): Account | undefined;
  /** Returns all accounts, sorted by address. */
  all(): readonly Account[];
  /**
   * Adds an account with a new address. The home at `namespace` is created at its first use, as a folder in the space of
   * `team` if one is named.
   */
  add(account: NewAccount & { readonly limitBytes: number }, namespace: string, team?: string): Account;
  change(id: string, change: AccountChange): void;
  /** Removes an account with its consents and links. The service's housekeeping deletes the files later. */
  remove(id: string): void;
  /** Returns the homes of removed accounts whose files may still exist. */
  abandonedHomes(): readonly string[];
  /** Records that the files of a removed account's home have been deleted. */
  forgetHome(namespace: string): void;
}

interface Row {
  readonly account_id: string;
  readonly namespace: string;
  readonly team_namespace: string | null;
  readonly home_path: string | null;
  readonly email: string;
  readonly given_name: string;
  readonly surname: string;
  readonly may_delete_permanently: number;
  readonly limit_bytes: number | null;
  readonly password_hash: Buffer | null;
}

/** A row with the name of its team. */
interface FoundRow extends Row {
  readonly team_name: string | null;
}

const SELECT = `
  SELECT accounts.*, teams.name AS team_name
  FROM accounts LEFT JOIN teams ON teams.namespace = accounts.team_namespace`;

export function accountsIn(database: SqliteDatabase): Accounts {
  const byEmail = database.prepare<[string], FoundRow>(`${SELECT} WHERE email = ? COLLATE NOCASE`);
  const byId = database.prepare<[string], FoundRow>(`${SELECT} WHERE account_id = ?`);
  const every = database.prepare<[], FoundRow>(`${SELECT} ORDER BY email COLLATE NOCASE`);
  const insert = database.prepare<[Row]>(
    `INSERT INTO accounts (account_id, namespace, team_namespace, home_path, email, given_name, surname,
       may_delete_permanently, limit_bytes, password_hash)
     VALUES (@account_id, @namespace, @team_namespace, @home_path, @email, @given_name, @surname,
       @may_delete_permanently, @limit_bytes, @password_hash)`,
  );
  const teamNamed = database.prepare<[string], string>('SELECT namespace FROM teams WHERE name = ?').pluck();
  const addTeam = database.prepare<[string, string]>('INSERT INTO teams (namespace, name) VALUES (?, ?)');
  const homesOf = database
    .prepare<[string], string>('SELECT home_path FROM accounts WHERE team_namespace = ?')
    .pluck();
  const update = database.prepare<[Row]>(
    `UPDATE accounts SET given_name = @given_name, surname = @surname,
       may_delete_permanently = @may_delete_permanently, limit_bytes = @limit_bytes, password_hash = @password_hash
     WHERE account_id = @account_id`,
  );
  // A team keeps the folder of a member who leaves.
  const abandon = database.prepare<[string]>(
    'INSERT INTO abandoned_homes SELECT namespace FROM accounts WHERE account_id = ? AND team_namespace IS NULL',
  );
  const removals = [
    "DELETE FROM temporary_links WHERE json_extract(target, '$.accountId') = ?",
    ...['tags', 'copy_references', 'links', 'codes', 'grants', 'accounts'].map(
      (table) => `DELETE FROM ${table} WHERE account_id = ?`,
    ),
  ].map((sql) => database.prepare<[string]>(sql));
  const abandoned = database.prepare<[], string>('SELECT namespace FROM abandoned_homes').pluck();
  const forget = database.prepare<[string]>('DELETE FROM abandoned_homes WHERE namespace = ?');

  function find(id: string): Account | undefined {
    const row = byId.get(id);
    return row && accountOf(row);
  }

  function withId(id: string): Account {
    const account = find(id);
    if (!account) throw new Error(`a token or link belongs to the account ${id}, which does not exist`);
    return account;
  }

  function placeIn(name: string, account: NewAccount, homeNamespace: string): Team {
    let namespace = teamNamed.get(name);
    if (namespace === undefined) {
      namespace = newNamespace();
      addTeam.run(namespace, name);
    }
    const taken = new Set(homesOf.all(namespace).map(foldName));
    const homePath = freePath(homePathOf(account), (path) => !taken.has(foldName(path)));
    return { name, namespace, homeNamespace, homePath };
  }

  return {
    withEmail(email) {
      const row = byEmail.get(email);
      return row && accountOf(row);
    },
    withId,
    find,
    all: () => every.all().map(accountOf),
    add: database.transaction((account: NewAccount, namespace: string, teamName?: string) => {
      const team = teamName === undefined ? undefined : placeIn(teamName, account, namespace);
      const added = { ...account, id: newAccountId(), namespace, ...(team && { team }) };
      insert.run(rowOf(added));
      return added;
    }).immediate,
    change: database.transaction((id: string, change: AccountChange) => {
      update.run(rowOf({ ...withId(id), ...change }));
    }).immediate,
    remove: database.transaction((id: string) => {
      abandon.run(id);
      for (const removal of removals) removal.run(id);
    }).immediate,
    abandonedHomes: () => abandoned.all(),
    forgetHome(namespace) {
      forget.run(namespace);
    },
  };
}

/** Upper limit of namespace ids: an exact number in every client, and large enough to avoid collisions. */
const NAMESPACE_LIMIT = 2 ** 47;

/** Returns a random namespace id. */
export function newNamespace(): string {
  return String(randomInt(1, NAMESPACE_LIMIT));
}

function newAccountId(): string {
  return `dbid:${randomBytes(27).toString('base64url').slice(0, 35)}`;
}

/** Returns the folder of a member with this name in the team's space. */
function homePathOf({ givenName, surname, email }: NewAccount): Path {
  const name = `${givenName} ${surname}`.replace(/[/\\\p{Cc}]+/gu, ' ').trim();
  return pathOf([name === '' || /^\.+$/.test(name) ? email.replaceAll('/', '_') : name]);
}

function accountOf(row: FoundRow): Account {
  const { namespace: homeNamespace, team_name: name, team_namespace: namespace, home_path: homePath } = row;
  const team =
    name === null || namespace === null || homePath === null
      ? undefined
      : { name, namespace, homeNamespace, homePath };
  return {
    id: row.account_id,
    namespace: row.namespace,
    ...(team && { team }),
    email: row.email,
    givenName: row.given_name,
    surname: row.surname,
    mayDeletePermanently: row.may_delete_permanently === 1,
    ...(row.limit_bytes !== null && { limitBytes: row.limit_bytes }),
    ...(row.password_hash !== null && { passwordHash: row.password_hash }),
  };
}

function rowOf(account: Account): Row {
  return {
    account_id: account.id,
    namespace: account.team?.homeNamespace ?? account.namespace,
    team_namespace: account.team?.namespace ?? null,
    home_path: account.team?.homePath ?? null,
    email: account.email,
    given_name: account.givenName,
    surname: account.surname,
    may_delete_permanently: account.mayDeletePermanently ? 1 : 0,
    limit_bytes: account.limitBytes ?? null,
    password_hash: account.passwordHash ? Buffer.from(account.passwordHash) : null,
  };
}
