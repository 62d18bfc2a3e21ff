import type { Storage } from '../storage/storage.ts';
import type { Account } from './accounts.ts';

/**
 * Sees to it that an account that is about to be used has its home, as large as the account says: accounts are also
 * made and changed by a command, beside a service that runs and alone may write to the storage.
 */
export function homesIn(storage: Storage): (account: Account) => Account {
  const limits = new Map<string, number>();
  return (account) => {
    const { namespace, limitBytes } = account;
    if (limitBytes === undefined || limits.get(namespace) === limitBytes) return account;
    storage.createNamespace(namespace, limitBytes);
    limits.set(namespace, limitBytes);
    return account;
  };
}
