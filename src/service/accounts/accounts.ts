import { randomBytes, randomInt } from 'node:crypto';
import type { Database } from 'better-sqlite3';

export interface Account {
  /** 40 characters: `dbid:` and 35 more. */
  readonly id: string;
  /** Digits: the account's home. */
  readonly namespace: string;
  readonly email: string;
  readonly givenName: string;
  readonly surname: string;
  /** Whether `permanently_delete` may be called for it. */
  readonly mayDeletePermanently: boolean;
}

export type NewAccount = Omit<Account, 'id' | 'namespace'>;

export interface Accounts {
  /** The account with this address; `undefined` if there is none. */
  withEmail(email: string): Account | undefined;
  withId(id: string): Account;
  /** `namespace` must exist already, so that no account is ever without its home. */
  add(account: NewAccount, namespace: string): Account;
}

interface Row {
  readonly account_id: string;
  readonly namespace: string;
  readonly email: string;
  readonly given_name: string;
  readonly surname: string;
  readonly may_delete_permanently: number;
}

export function accountsIn(database: Database): Accounts {
  const byEmail = database.prepare<[string], Row>('SELECT * FROM accounts WHERE email = ?');
  const byId = database.prepare<[string], Row>('SELECT * FROM accounts WHERE account_id = ?');
  const insert = database.prepare<[string, string, string, string, string, number]>(
    'INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?)',
  );
  return {
    withEmail(email) {
      const row = byEmail.get(email);
      return row && accountOf(row);
    },
    withId(id) {
      const row = byId.get(id);
      if (!row) throw new Error(`a token or a link belongs to ${id}, which is no account`);
      return accountOf(row);
    },
    add(account, namespace) {
      const id = newAccountId();
      const { email, givenName, surname, mayDeletePermanently } = account;
      insert.run(id, namespace, email, givenName, surname, mayDeletePermanently ? 1 : 0);
      return { ...account, id, namespace };
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
  };
}
