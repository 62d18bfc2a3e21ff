import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Match } from './search.ts';

/** Results of recent searches, so that their next pages need no second search. */
export interface Searches {
  /** Keeps the result of an account's search. Returns its name. */
  keep(accountId: string, matches: readonly Match[]): string;
  /** Returns `undefined` for a result that was dropped, lost at a restart, or is another account's. */
  find(accountId: string, name: string): readonly Match[] | undefined;
}

/** Maximum number of matches kept in all, about fifty megabytes. */
const KEPT_MAX = 100_000;

export function searchesOf(): Searches {
  const kept = new LRUCache<string, { readonly accountId: string; readonly matches: readonly Match[] }>({
    maxSize: KEPT_MAX,
    sizeCalculation: ({ matches }) => Math.max(1, matches.length),
  });
  return {
    keep(accountId, matches) {
      const name = randomBytes(12).toString('base64url');
      kept.set(name, { accountId, matches });
      return name;
    },
    find(accountId, name) {
      const search = kept.get(name);
      return search?.accountId === accountId ? search.matches : undefined;
    },
  };
}
