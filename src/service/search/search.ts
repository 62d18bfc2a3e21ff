import { setImmediate as otherCalls } from 'node:timers/promises';
import {
  type CursorOwner,
  type Storage,
  StorageError,
  type Stored,
  type StoredDeletion,
} from '../storage/storage.ts';
import { categoryOf, extensionOf, type FileCategory } from './category.ts';
import { type NameMatcher, nameMatcher } from './name-match.ts';

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

const PAGE_ENTRIES = 2000;

/** All that matches, in order. An unknown folder holds nothing. Lets other calls through between pages. */
export async function matchesOf(storage: Storage, owner: CursorOwner, search: Search): Promise<Match[]> {
  const matcher = nameMatcher(search.query);
  const order = search.order === 'relevance' ? byRank : byTime;
  let found: Ranked[] = [];
  for await (const entries of pagesOf(storage, owner, search)) {
    for (const item of entries) {
      const rank = isWanted(item, search) ? matcher.rank(item.name) : undefined;
      if (rank !== undefined) found.push({ item, rank });
    }
    // What is not among the best now will not be later: a word that is in a million names must not fill the memory.
    if (found.length >= 2 * MATCHES_MAX) found = best(found, order);
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

async function* pagesOf(
  storage: Storage,
  owner: CursorOwner,
  { path, status }: Search,
): AsyncGenerator<readonly Match[]> {
  const includeDeleted = status === 'deleted';
  try {
    let page = storage.list(owner, { path, recursive: true, includeDeleted }, PAGE_ENTRIES);
    const top = path === '' ? undefined : storage.stat(owner.namespace, path, false).pathLower;
    for (;;) {
      yield page.entries.filter(({ pathLower }) => pathLower !== top);
      if (!page.hasMore) return;
      await otherCalls();
      page = storage.listContinue(owner, page.cursor);
    }
  } catch (error) {
    if (!(error instanceof StorageError) || error.refusal.kind !== 'lookup') throw error;
    if (error.refusal.tag !== 'not_found') throw error;
  }
}

function isWanted(item: Match, { status, extensions, categories }: Search): boolean {
  if ((item.kind === 'deleted') !== (status === 'deleted')) return false;
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
