import type { FullAccount } from '../../wire/account.ts';
import { type Account, inHome, inRoot } from '../accounts/accounts.ts';

/** Returns the account's namespaces, as it learns them itself and from a refused path root. */
export function rootInfo(account: Account): FullAccount['root_info'] {
  const namespaces = {
    root_namespace_id: inRoot(account).namespace,
    home_namespace_id: inHome(account).namespace,
  };
  const { team } = account;
  return team
    ? { '.tag': 'team', ...namespaces, home_path: team.homePath }
    : { '.tag': 'user', ...namespaces };
}
