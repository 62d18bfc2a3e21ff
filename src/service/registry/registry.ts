import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { type Accounts, accountsIn } from '../accounts/accounts.ts';
import { type Apps, appsIn } from '../accounts/apps.ts';
import { type Codes, codesIn } from '../accounts/codes.ts';
import { type Grants, grantsIn } from '../accounts/grants.ts';
import { type Tokens, tokensIn } from '../accounts/tokens.ts';

/** The accounts, the apps, and everything that belongs to them beside files. */
export interface Registry {
  readonly accounts: Accounts;
  readonly apps: Apps;
  readonly grants: Grants;
  readonly codes: Codes;
  readonly tokens: Tokens;
}

export function registryIn(database: SqliteDatabase): Registry {
  const grants = grantsIn(database);
  return {
    accounts: accountsIn(database),
    apps: appsIn(database),
    grants,
    codes: codesIn(database, grants),
    tokens: tokensIn(database, grants),
  };
}
