import { randomBytes, randomInt } from 'node:crypto';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';

export interface Account {
  /** 40 characters: `dbid:` and 35 more. */
  readonly id: string;
  /** Digits: the account's home. */
  readonly namespace: string;
  /** Found in whatever case its letters from A to Z are written. */
  readonly email: string;
  readonly givenName: string;
  readonly surname: string;
  /** Whether `permanently_delete` may be called for it. */
  readonly mayDeletePermanently: boolean;
  /** Of its home. `undefined`: made before limits were kept here, and the home knows. */
  readonly limitBytes?: number;
  /** Of the password that signs in at `/oauth2/authorize`; without one there is no signing in. */
  readonly passwordHash?: Uint8Array;
}

export type NewAccount = Omit<Account, 'id' | 'namespace'>;

/** What can be changed of an account that is there. */
export type AccountChange = Partial<Omit<NewAccount, 'email'>>;

export interface Accounts {
  /** The account with this address; `undefined` if there is none. */
  withEmail(email: string): Account | undefined;
  /** The account that a token or a link belongs to, and so is there. */
  withId(id: string): Account;
  /** Likewise, of an id that may be of no account any more. */
  find(id: string): Account | undefined;
  /** By address. */
  all(): readonly Account[];
  /** The home at `namespace` is made when it is first used. The address must be new. */
  add(account: NewAccount & { readonly limitBytes: number }, namespace: string): Account;
  change(id: string, change: AccountChange): void;
  /** With its consents and links, at once; its files are deleted by the service's housekeeping. */
  remove(id: string): void;
  /** The homes of removed accounts whose files may still be there. */
  abandonedHomes(): readonly string[];
  /** The files of this home are gone. */
  forgetHome(namespace: string): void;
}

interface Row {
  readonly account_id: string;
  readonly namespace: string;
  readonly email: string;
  readonly given_name: string;
  readonly surname: string;
  readonly may_delete_permanently: number;
  readonly limit_bytes: number | null;
  readonly password_hash: Buffer | null;
}

export function accountsIn(database: SqliteDatabase): Accounts {
  const byEmail = database.prepare<[string], Row>('SELECT * FROM accounts WHERE email = ? COLLATE NOCASE');
  const byId = database.prepare<[string], Row>('SELECT * FROM accounts WHERE account_id = ?');
  const every = database.prepare<[], Row>('SELECT * FROM accounts ORDER BY email COLLATE NOCASE');
  const insert = database.prepare<[Row]>(
    `INSERT INTO accounts (account_id, namespace, email, given_name, surname, may_delete_permanently, limit_bytes,
       password_hash)
     VALUES (@account_id, @namespace, @email, @given_name, @surname, @may_delete_permanently, @limit_bytes,
       @password_hash)`,
  );
  const update = database.prepare<[Row]>(
    `UPDATE accounts SET given_name = @given_name, surname = @surname,
       may_delete_permanently = @may_delete_permanently, limit_bytes = @limit_bytes, password_hash = @password_hash
     WHERE account_id = @account_id`,
  );
  const abandon = database.prepare<[string]>(
    'INSERT INTO abandoned_homes SELECT namespace FROM accounts WHERE account_id = ?',
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

  return {
    withEmail(email) {
      const row = byEmail.get(email);
      return row && accountOf(row);
    },
    withId,
    find,
    all: () => every.all().map(accountOf),
    add(account, namespace) {
      const added = { ...account, id: newAccountId(), namespace };
      insert.run(rowOf(added));
      return added;
    },
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

/** Small enough to be an exact number in every client, large enough that no two are the same. */
const NAMESPACE_LIMIT = 2 ** 47;

/** A namespace id that no account has had. */
export function newNamespace(): string {
  return String(randomInt(1, NAMESPACE_LIMIT));
}

function newAccountId(): string {
  return `dbid:${randomBytes(27).toString('base64url').slice(0, 35)}`;
}

function accountOf(row: Row): Account {
  return {
    id: row.account_id,
    namespace: row.namespace,
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
    namespace: account.namespace,
    email: account.email,
    given_name: account.givenName,
    surname: account.surname,
    may_delete_permanently: account.mayDeletePermanently ? 1 : 0,
    limit_bytes: account.limitBytes ?? null,
    password_hash: account.passwordHash ? Buffer.from(account.passwordHash) : null,
  };
}
