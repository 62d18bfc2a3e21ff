import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import {
  type Account,
  type AccountChange,
  type Accounts,
  freeHomePath,
  type NewAccount,
  newAccountId,
  newNamespace,
  type Team,
} from '../../accounts/accounts.ts';

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
export interface FoundRow extends Row {
  readonly team_name: string | null;
}

const SELECT = `
  SELECT accounts.*, teams.name AS team_name
  FROM accounts LEFT JOIN teams ON teams.namespace = accounts.team_namespace`;

/** Returns the accounts in a database. */
export function accountsIn(database: SqliteDatabase): Accounts {
  const byEmail = database.prepare<[string], FoundRow>(`${SELECT} WHERE email = ? COLLATE NOCASE`);
  const byId = database.prepare<[string], FoundRow>(`${SELECT} WHERE account_id = ?`);
  const byHome = database.prepare<[string], FoundRow>(`${SELECT} WHERE accounts.namespace = ?`);
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
  const addPassword = database.prepare<[Buffer, string]>(
    'UPDATE accounts SET password_hash = ? WHERE account_id = ? AND password_hash IS NULL',
  );
  // A team keeps the folder of a member who leaves.
  const abandon = database.prepare<[string]>(
    'INSERT INTO abandoned_homes SELECT namespace FROM accounts WHERE account_id = ? AND team_namespace IS NULL',
  );
  const removals = [
    "DELETE FROM temporary_links WHERE json_extract(target, '$.accountId') = ?",
    ...['tags', 'copy_references', 'links', 'codes', 'grants', 'signed_in', 'jobs', 'accounts'].map(
      (table) => `DELETE FROM ${table} WHERE account_id = ?`,
    ),
  ].map((sql) => database.prepare<[string]>(sql));
  const abandoned = database.prepare<[], string>('SELECT namespace FROM abandoned_homes').pluck();
  const forget = database.prepare<[string]>('DELETE FROM abandoned_homes WHERE namespace = ?');

  function placeIn(name: string, account: NewAccount, homeNamespace: string): Team {
    let namespace = teamNamed.get(name);
    if (namespace === undefined) {
      namespace = newNamespace();
      addTeam.run(namespace, name);
    }
    return { name, namespace, homeNamespace, homePath: freeHomePath(account, homesOf.all(namespace)) };
  }

  const add = database.transaction((account: NewAccount, namespace: string, teamName?: string) => {
    const team = teamName === undefined ? undefined : placeIn(teamName, account, namespace);
    const added = { ...account, id: newAccountId(), namespace, ...(team && { team }) };
    insert.run(rowOf(added));
    return added;
  });
  const change = database.transaction((id: string, fields: AccountChange) => {
    const row = byId.get(id);
    if (row) update.run(rowOf({ ...accountOf(row), ...fields }));
  });
  const remove = database.transaction((id: string) => {
    abandon.run(id);
    for (const removal of removals) removal.run(id);
  });

  return {
    withEmail: async (email) => found(byEmail.get(email)),
    find: async (id) => found(byId.get(id)),
    findAll: async (ids) => ids.map((id) => found(byId.get(id))),
    ofHome: async (namespace) => found(byHome.get(namespace)),
    all: async () => every.all().map(accountOf),
    add: async (account, namespace, team) => add.immediate(account, namespace, team),
    async change(id, fields) {
      change.immediate(id, fields);
    },
    addPassword: async (id, passwordHash) => addPassword.run(Buffer.from(passwordHash), id).changes > 0,
    async remove(id) {
      remove.immediate(id);
    },
    abandonedHomes: async () => abandoned.all(),
    async forgetHome(namespace) {
      forget.run(namespace);
    },
  };
}

function found(row: FoundRow | undefined): Account | undefined {
  return row && accountOf(row);
}

/** Returns the account in a row. */
export function accountOf(row: FoundRow): Account {
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
