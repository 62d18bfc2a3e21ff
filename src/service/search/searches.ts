import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Match } from './search.ts';

/** What the last searches found, so that their next pages need not look through the whole account again. */
export interface Searches {
  /** Keeps what a search of this account found; its name. */
  keep(accountId: string, matches: readonly Match[]): string;
  /** `undefined`: it was long ago, before a restart, or is another's. */
  find(accountId: string, name: string): readonly Match[] | undefined;
}

/** Matches that are kept in all: some fifty megabytes. */
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
