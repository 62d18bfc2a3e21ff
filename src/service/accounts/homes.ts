import type { InnerNamespace } from '../storage/inner-namespaces.ts';
import { type Storage, StorageError, type StoredPage } from '../storage/storage.ts';
import type { Account, Accounts } from './accounts.ts';

/**
 * Returns a function that makes sure that an account's home exists with the account's quota before it is used. Commands
 * may create and change accounts while a service runs, and only the service writes to the storage.
 */
export function homesIn(storage: Storage): (account: Account) => Promise<Account> {
  return async (account) => {
    const { namespace, limitBytes } = account;
    if (limitBytes !== undefined) await storage.createNamespace(namespace, limitBytes);
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

/**
 * Returns the first items of a home, also deleted ones. A page without items that has more is one of a storage that is too
 * busy to clear away what was removed.
 */
export async function firstItems(storage: Storage, namespace: string, limit: number): Promise<StoredPage> {
  const owner = { namespace, account: '', app: '' };
  const scope = { path: '', recursive: false, includeDeleted: true };
  const page = await storage.list(owner, scope, limit);
  if (page.entries.length > 0 || !page.hasMore) return page;
  // The page has examined removed items only, whose rows this clears away.
  await storage.tidy();
  return await storage.list(owner, scope, limit);
}

/** Returns the facts about accounts' homes that drives need, and the operation that creates their roots. */
export function homesOfDrives(storage: Storage, withHome: (account: Account) => Promise<Account>) {
  return {
    async isEmpty(account: Account): Promise<boolean> {
      const { namespace } = await withHome(account);
      const { entries, hasMore } = await firstItems(storage, namespace, 1);
      return entries.length === 0 && !hasMore;
    },
    makeFolder: async (account: Account, path: string) =>
      await makeFolder(storage, (await withHome(account)).namespace, path),
  };
}
