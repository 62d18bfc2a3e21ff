import type { InnerNamespace } from '../storage/inner-namespaces.ts';
import { type Storage, StorageError } from '../storage/storage.ts';
import type { Account, Accounts } from './accounts.ts';

/**
 * Returns a function that makes sure that an account's home exists with the account's quota before it is used. Commands
 * may create and change accounts while a service runs, and only the service writes to the storage.
 */
export function homesIn(storage: Storage): (account: Account) => Promise<Account> {
  const limits = new Map<string, number>();
  return async (account) => {
    const { namespace, limitBytes } = account;
    if (limitBytes === undefined || limits.get(namespace) === limitBytes) return account;
    await storage.createNamespace(namespace, limitBytes);
    limits.set(namespace, limitBytes);
    return account;
  };
}

/** Returns the place of each home that is a folder of a team's space, by its namespace. */
export function teamHomesIn(accounts: Accounts): (namespace: string) => Promise<InnerNamespace | undefined> {
  return async (namespace) => {
    const team = (await accounts.ofHome(namespace))?.team;
    return team && { outer: team.namespace, folder: team.homePath };
  };
}

/** Returns a function that makes sure that the folder of a team's member exists before the member uses the service. */
export function teamFoldersIn(storage: Storage): (account: Account) => Promise<void> {
  const made = new Map<string, Promise<void>>();
  return ({ team }) => {
    if (!team) return Promise.resolve();
    const { homeNamespace, namespace, homePath } = team;
    const folder = made.get(homeNamespace) ?? makeFolder(storage, namespace, homePath);
    made.set(homeNamespace, folder);
    // The next call tries again.
    folder.catch(() => made.delete(homeNamespace));
    return folder;
  };
}

async function makeFolder(storage: Storage, namespace: string, path: string): Promise<void> {
  try {
    await storage.createFolder(namespace, path, false);
  } catch (error) {
    const isThere = error instanceof StorageError && error.refusal.kind === 'conflict';
    if (!isThere) throw error;
  }
}

/** Returns the facts about accounts' homes that drives need, and the operation that creates their roots. */
export function homesOfDrives(storage: Storage, withHome: (account: Account) => Promise<Account>) {
  return {
    async isEmpty(account: Account): Promise<boolean> {
      const { id, namespace } = await withHome(account);
      const owner = { namespace, account: id, app: '' };
      const scope = { path: '', recursive: false, includeDeleted: true };
      return (await storage.list(owner, scope, 1)).entries.length === 0;
    },
    makeFolder: async (account: Account, path: string) =>
      await makeFolder(storage, (await withHome(account)).namespace, path),
  };
}
