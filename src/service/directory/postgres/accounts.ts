import type { Pool } from 'pg';
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
import { changesOf, findRow, type Queries, rowsOf } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';

/** A row of an account, with the name of its team. */
export interface AccountRow {
  readonly account_id: string;
  readonly namespace: string;
  readonly team_namespace: string | null;
  readonly home_path: string | null;
  readonly email: string;
  readonly given_name: string;
  readonly surname: string;
  readonly may_delete_permanently: boolean;
  readonly limit_bytes: number | null;
  readonly password_hash: Buffer | null;
  readonly team_name: string | null;
}

const SELECT = `
  SELECT accounts.*, teams.name AS team_name
  FROM davgate.accounts LEFT JOIN davgate.teams ON teams.namespace = accounts.team_namespace`;

/** Tables with the rows of an account, in an order in which they can be emptied. */
const TABLES_OF_ACCOUNT = [
  ...['temporary_links', 'tags', 'copy_references', 'links', 'codes', 'grants', 'signed_in', 'jobs'],
  'accounts',
];

/** Returns the accounts in a database. */
export function accountsIn(pool: Pool): Accounts {
  return {
    withEmail: async (email) =>
      found(await findRow(pool, `${SELECT} WHERE lower(email) = ${folded('$1')}`, email)),
    find: async (id) => found(await findRow(pool, `${SELECT} WHERE account_id = $1`, id)),
    async findAll(ids) {
      const rows = await rowsOf<AccountRow>(pool, `${SELECT} WHERE account_id = ANY ($1)`, ids);
      const byId = new Map(rows.map((row) => [row.account_id, row]));
      return ids.map((id) => found(byId.get(id)));
    },
    ofHome: async (namespace) =>
      found(await findRow(pool, `${SELECT} WHERE accounts.namespace = $1`, namespace)),
    all: async () => (await rowsOf<AccountRow>(pool, `${SELECT} ORDER BY lower(email)`)).map(accountOf),
    add: (account, namespace, team) => inTransaction(pool, (on) => add(on, account, namespace, team)),
    change: (id, fields) => inTransaction(pool, (on) => change(on, id, fields)),
    async addPassword(id, passwordHash) {
      const sql =
        'UPDATE davgate.accounts SET password_hash = $2 WHERE account_id = $1 AND password_hash IS NULL';
      return (await changesOf(pool, sql, id, passwordHash)) > 0;
    },
    remove: (id) => inTransaction(pool, (on) => remove(on, id)),
    async abandonedHomes() {
      const rows = await rowsOf<{ namespace: string }>(pool, 'SELECT namespace FROM davgate.abandoned_homes');
      return rows.map(({ namespace }) => namespace);
    },
    async forgetHome(namespace) {
      await pool.query('DELETE FROM davgate.abandoned_homes WHERE namespace = $1', [namespace]);
    },
  };
}

/** Returns SQL for a parameter with A to Z in lower case, like the unique indexes of addresses and of teams. */
function folded(parameter: string): string {
  return `lower(${parameter}::text COLLATE "C")`;
}

async function add(
  on: Queries,
  account: NewAccount,
  namespace: string,
  teamName: string | undefined,
): Promise<Account> {
  const team = teamName === undefined ? undefined : await placeIn(on, teamName, account, namespace);
  const added = { ...account, id: newAccountId(), namespace, ...(team && { team }) };
  await on.query(
    `INSERT INTO davgate.accounts (account_id, given_name, surname, may_delete_permanently, limit_bytes,
       password_hash, namespace, team_namespace, home_path, email)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [...changeableOf(added), namespace, team?.namespace ?? null, team?.homePath ?? null, account.email],
  );
  return added;
}

/** Finds a place in a team, which is created if it is new. Its row stays locked, so that no other account gets the place. */
async function placeIn(on: Queries, name: string, account: NewAccount, homeNamespace: string): Promise<Team> {
  const [row] = await rowsOf<{ namespace: string }>(
    on,
    `INSERT INTO davgate.teams (namespace, name) VALUES ($1, $2)
     ON CONFLICT (lower(name)) DO UPDATE SET name = teams.name RETURNING namespace`,
    newNamespace(),
    name,
  );
  if (!row) throw new Error('a team that was just made or locked is not there');
  const homes = await rowsOf<{ home_path: string }>(
    on,
    'SELECT home_path FROM davgate.accounts WHERE team_namespace = $1',
    row.namespace,
  );
  const homePath = freeHomePath(
    account,
    homes.map(({ home_path: path }) => path),
  );
  return { name, namespace: row.namespace, homeNamespace, homePath };
}

async function change(on: Queries, id: string, fields: AccountChange): Promise<void> {
  const row = await findRow<AccountRow>(
    on,
    `${SELECT} WHERE account_id = $1 FOR NO KEY UPDATE OF accounts`,
    id,
  );
  if (!row) return;
  await on.query(
    `UPDATE davgate.accounts SET given_name = $2, surname = $3, may_delete_permanently = $4, limit_bytes = $5,
       password_hash = $6
     WHERE account_id = $1`,
    changeableOf({ ...accountOf(row), ...fields }),
  );
}

/** Removes an account, locked first, so that no other process adds rows that belong to it. */
async function remove(on: Queries, id: string): Promise<void> {
  await on.query('SELECT FROM davgate.accounts WHERE account_id = $1 FOR UPDATE', [id]);
  // A team keeps the folder of a member who leaves.
  await on.query(
    `INSERT INTO davgate.abandoned_homes
     SELECT namespace FROM davgate.accounts WHERE account_id = $1 AND team_namespace IS NULL`,
    [id],
  );
  for (const table of TABLES_OF_ACCOUNT)
    await on.query(`DELETE FROM davgate.${table} WHERE account_id = $1`, [id]);
}

function found(row: AccountRow | undefined): Account | undefined {
  return row && accountOf(row);
}

/** Returns the account in a row. */
export function accountOf(row: AccountRow): Account {
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
    mayDeletePermanently: row.may_delete_permanently,
    ...(row.limit_bytes !== null && { limitBytes: row.limit_bytes }),
    ...(row.password_hash !== null && { passwordHash: row.password_hash }),
  };
}

/** Returns the id and the changeable columns of an account, in the order of the statements above. */
function changeableOf(account: Account): readonly unknown[] {
  const { id, givenName, surname, mayDeletePermanently, limitBytes, passwordHash } = account;
  return [id, givenName, surname, mayDeletePermanently, limitBytes ?? null, passwordHash ?? null];
}
