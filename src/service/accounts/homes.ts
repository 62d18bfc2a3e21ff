import { type Storage, StorageError } from '../storage/storage.ts';
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

/** What can be told of an account's home, and done there, before any client comes. */
export function homesOfDrives(storage: Storage, withHome: (account: Account) => Account) {
  return {
    isEmpty(account: Account): boolean {
      const { id, namespace } = withHome(account);
      const owner = { namespace, account: id, app: '' };
      const scope = { path: '', recursive: false, includeDeleted: true };
      return storage.list(owner, scope, 1).entries.length === 0;
    },
    async makeFolder(account: Account, path: string): Promise<void> {
      try {
        await storage.createFolder(withHome(account).namespace, path, false);
      } catch (error) {
        const isThere = error instanceof StorageError && error.refusal.kind === 'conflict';
        if (!isThere) throw error;
      }
    },
  };
}
