import { setImmediate as otherCalls } from 'node:timers/promises';
import {
  type NameLookup,
  type Storage,
  StorageError,
  type Stored,
  type StoredDeletion,
} from '../storage/storage.ts';
import { categoryOf, extensionOf, type FileCategory } from './category.ts';
import { type NameMatcher, nameMatcher, RANK_MAX } from './name-match.ts';

/** What is searched for, and where. */
export interface Search {
  readonly query: string;
  /** `''` is the root. */
  readonly path: string;
  readonly status: 'active' | 'deleted';
  readonly order: 'relevance' | 'last_modified_time';
  /** In lower case, without dots; none stands for all. */
  readonly extensions: readonly string[];
  readonly categories: readonly FileCategory[];
}

export type Match = Stored | StoredDeletion;

/** As many as the real service finds for one query. */
const MATCHES_MAX = 10_000;

/**
 * All that matches, in order. An unknown folder holds nothing. Lets other calls through between short pieces of work, and
 * ends with `signal`'s reason when that is aborted.
 */
export async function matchesOf(
  storage: Storage,
  namespace: string,
  search: Search,
  signal: AbortSignal,
): Promise<Match[]> {
  const matcher = nameMatcher(search.query);
  const isByRank = search.order === 'relevance';
  const order = isByRank ? byRank : byTime;
  // Every match is found by the last lookup; those before it find the best ones first.
  const lookups = isByRank ? matcher.lookups : matcher.lookups.slice(-1);
  let found: Ranked[] = [];
  for (const [index, lookup] of lookups.entries()) {
    const isWantedRank = (rank: number | undefined) =>
      isByRank ? rank === RANK_MAX - index : rank !== undefined;
    for await (const items of piecesOf(storage, namespace, search, lookup, (nameKey) =>
      isWantedRank(matcher.rank(nameKey)),
    )) {
      signal.throwIfAborted();
      for (const item of items)
        if (isWanted(item, search)) found.push({ item, rank: matcher.rank(item.name) ?? 0 });
      // More than are told, and none that comes later is better.
      if (isByRank && found.length >= MATCHES_MAX) return best(found, order).map(({ item }) => item);
      // What is not among the best now will not be later: a word that is in a million names must not fill the memory.
      if (found.length >= 2 * MATCHES_MAX) found = best(found, order);
    }
  }
  return best(found, order).map(({ item }) => item);
}

function best(found: Ranked[], order: typeof byRank): Ranked[] {
  return found.sort(order).slice(0, MATCHES_MAX);
}

/** The parts of a match's name. */
export function highlightsOf(query: string, { name }: Match): ReturnType<NameMatcher['highlights']> {
  return nameMatcher(query).highlights(name);
}

interface Ranked {
  readonly item: Match;
  readonly rank: number;
}

async function* piecesOf(
  storage: Storage,
  namespace: string,
  { path, status }: Search,
  lookup: NameLookup,
  matches: (nameKey: string) => boolean,
): AsyncGenerator<readonly Match[]> {
  const scope = { path, deleted: status === 'deleted' };
  try {
    for (const items of storage.findNames(namespace, scope, lookup, matches)) {
      yield items;
      await otherCalls();
    }
  } catch (error) {
    if (!(error instanceof StorageError) || error.refusal.kind !== 'lookup') throw error;
    if (error.refusal.tag !== 'not_found') throw error;
  }
}

function isWanted(item: Match, { extensions, categories }: Search): boolean {
  if (categories.length > 0 && !categories.includes(categoryOf(item))) return false;
  return extensions.length === 0 || (item.kind !== 'folder' && extensions.includes(extensionOf(item.name)));
}

function byRank(one: Ranked, other: Ranked): number {
  return other.rank - one.rank || compare(one.item.pathLower, other.item.pathLower);
}

/** The newest first; folders have no time. */
function byTime(one: Ranked, other: Ranked): number {
  return timeOf(other.item) - timeOf(one.item) || compare(one.item.pathLower, other.item.pathLower);
}

function timeOf(item: Match): number {
  return item.kind === 'file' ? item.serverModifiedMs : 0;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
