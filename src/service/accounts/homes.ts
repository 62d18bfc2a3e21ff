import { type Storage, StorageError } from '../storage/storage.ts';
import type { Account } from './accounts.ts';

/**
 * Returns a function that makes sure that an account's home exists with the account's quota before it is used. Commands
 * may create and change accounts while a service runs, and only the service writes to the storage.
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

/** Returns the facts about accounts' homes that drives need, and the operation that creates their roots. */
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
