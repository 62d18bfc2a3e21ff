import { setImmediate as otherCalls } from 'node:timers/promises';
import { extensionOf } from '../../util/file-name.ts';
import {
  type NameFilter,
  type NameLookup,
  type Storage,
  StorageError,
  type Stored,
  type StoredDeletion,
} from '../storage/storage.ts';
import { categoryOf, categoryOfName, type FileCategory } from './category.ts';
import { type NameMatcher, nameMatcher } from './name-match.ts';

/** A search: its query, and where it looks. */
export interface Search {
  readonly query: string;
  /** `''` is the root. */
  readonly path: string;
  readonly status: 'active' | 'deleted';
  readonly order: 'relevance' | 'last_modified_time';
  /** Extensions in lower case, without dots; empty for all. */
  readonly extensions: readonly string[];
  readonly categories: readonly FileCategory[];
}

export type Match = Stored | StoredDeletion;

/** Maximum number of matches of a query, as at the real service. */
const MATCHES_MAX = 10_000;

/**
 * From this many items on, a word counts as common: its items are not looked up one by one, because SQLite scans all
 * names of a folder or account in less time.
 */
const COMMON = 20_000;

/** Maximum number of words whose items are counted to find the rarest; each takes about 20 ms. */
const COUNTED_WORDS = 5;

/**
 * Returns all matches in order. An unknown folder has none. Lets other calls through between short pieces of work, and
 * throws `signal`'s reason when it is aborted.
 */
export async function matchesOf(
  storage: Storage,
  namespace: string,
  search: Search,
  signal: AbortSignal,
): Promise<Match[]> {
  try {
    return await bestOf(storage, namespace, search, signal);
  } catch (error) {
    const isUnknown = error instanceof StorageError && error.refusal.kind === 'lookup';
    if (isUnknown && error.refusal.tag === 'not_found') return [];
    throw error;
  }
}

async function bestOf(
  storage: Storage,
  namespace: string,
  search: Search,
  signal: AbortSignal,
): Promise<Match[]> {
  const matcher = nameMatcher(search.query);
  const isByRank = search.order === 'relevance';
  const order = isByRank ? byRank : byTime;
  let found: Ranked[] = [];
  for (const { lookup, ranks } of await passesOf(storage, namespace, matcher, search)) {
    const filter = {
      parts: matcher.words.map(({ text }) => text),
      matches: (nameKey: string) =>
        mayBeWanted(nameKey, search) && ranks.includes(matcher.rank(nameKey) ?? Number.NaN),
    };
    // Later items are never better: they have a lower rank, or were changed earlier.
    const isOrdered = ranks.length === 1 || lookup.by === 'change';
    for await (const items of piecesOf(storage, namespace, search, lookup, filter)) {
      signal.throwIfAborted();
      for (const item of items)
        if (isWanted(item, search)) found.push({ item, rank: matcher.rank(item.name) ?? 0 });
      if (isOrdered && enough(found, isByRank)) return best(found, order).map(({ item }) => item);
      // Items beyond the best so far can be dropped: a word in a million names must not fill the memory.
      if (found.length >= 2 * MATCHES_MAX) found = best(found, order);
    }
  }
  return best(found, order).map(({ item }) => item);
}

/** Whether enough matches are found. In the order of time folders come last, whenever they were created. */
function enough(found: readonly Ranked[], isByRank: boolean): boolean {
  if (found.length < MATCHES_MAX) return false;
  return isByRank || found.filter(({ item }) => item.kind !== 'folder').length >= MATCHES_MAX;
}

interface Pass {
  readonly lookup: NameLookup;
  readonly ranks: readonly number[];
}

/**
 * Returns the passes over the names, and the ranks that each looks for: the best first, when matches are returned in
 * that order.
 */
async function passesOf(
  storage: Storage,
  namespace: string,
  { words, whole }: NameMatcher,
  search: Search,
): Promise<readonly Pass[]> {
  const exactly: Pass = { lookup: { by: 'name', text: whole, exact: true }, ranks: [2] };
  const rarest = await rarestOf(storage, namespace, [...words, ...extensionWords(search.extensions)], search);
  // No name can match, but the folder may still be refused.
  if (whole === '' || rarest?.items === 0) return [exactly];
  const scope = { path: search.path, deleted: search.status === 'deleted' };
  const allRanks = [2, 1, 0];
  if ((await storage.countBelow(namespace, scope, COMMON)) < (rarest?.items ?? COMMON))
    return [{ lookup: { by: 'folder' }, ranks: allRanks }];
  const isRare = rarest !== undefined && rarest.items < COMMON;
  if (search.order !== 'relevance')
    return [{ lookup: isRare ? { by: 'word', ...rarest.word } : { by: 'change' }, ranks: allRanks }];
  // A common word leads to enough live names, unless they must be in one folder.
  const isHelpful = isRare || (rarest && scope.path === '' && !scope.deleted);
  return [
    exactly,
    { lookup: { by: 'name', text: whole, exact: false }, ranks: [1] },
    { lookup: isHelpful ? { by: 'word', ...rarest.word } : { by: 'folder' }, ranks: [0] },
  ];
}

/**
 * Returns the word that the fewest items have in their names; of a very long query only the longest words are counted.
 */
async function rarestOf(
  storage: Storage,
  namespace: string,
  words: NameMatcher['words'],
  { status }: Search,
): Promise<{ readonly word: NameMatcher['words'][number]; readonly items: number } | undefined> {
  let rarest: Awaited<ReturnType<typeof rarestOf>>;
  const longest = words.toSorted((one, other) => other.text.length - one.text.length).slice(0, COUNTED_WORDS);
  for (const word of longest) {
    const items = await storage.countNamed(namespace, status === 'deleted', word, COMMON);
    if (!rarest || items < rarest.items) rarest = { word, items };
    await otherCalls();
  }
  return rarest;
}

/** Returns the extension as a word, if only one is wanted: such names contain it. */
function extensionWords(extensions: readonly string[]): NameMatcher['words'] {
  const [text = ''] = extensions;
  return extensions.length === 1 && /^[a-z0-9]+$/.test(text) ? [{ text, exact: true }] : [];
}

function best(found: Ranked[], order: typeof byRank): Ranked[] {
  return found.sort(order).slice(0, MATCHES_MAX);
}

/** Returns the parts of a match's name. */
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
  filter: NameFilter,
): AsyncGenerator<readonly Match[]> {
  const scope = { path, deleted: status === 'deleted' };
  for await (const items of storage.findNames(namespace, scope, lookup, filter)) {
    yield items;
    await otherCalls();
  }
}

/** Whether an item with this name can match, before the item is looked up. */
function mayBeWanted(nameKey: string, { extensions, categories }: Search): boolean {
  if (extensions.length > 0 && !extensions.includes(extensionOf(nameKey))) return false;
  if (categories.length === 0 || categories.includes('folder')) return true;
  return categories.includes(categoryOfName(nameKey));
}

function isWanted(item: Match, { extensions, categories }: Search): boolean {
  if (categories.length > 0 && !categories.includes(categoryOf(item))) return false;
  return extensions.length === 0 || (item.kind !== 'folder' && extensions.includes(extensionOf(item.name)));
}

function byRank(one: Ranked, other: Ranked): number {
  return other.rank - one.rank || compare(one.item.pathLower, other.item.pathLower);
}

/** Orders by time, newest first; folders have no time. */
function byTime(one: Ranked, other: Ranked): number {
  return timeOf(other.item) - timeOf(one.item) || compare(one.item.pathLower, other.item.pathLower);
}

function timeOf(item: Match): number {
  return item.kind === 'file' ? item.serverModifiedMs : 0;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
