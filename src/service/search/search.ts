import { setImmediate as otherCalls } from 'node:timers/promises';
import {
  type NameLookup,
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

/**
 * In the order of time the names of a word in so many of them are not gone through: to go through all names, the last
 * changed first, finds enough of them sooner.
 */
const COMMON_NAMES = 50_000;

/** Words of a query that are counted to find the rarest: each takes some milliseconds. */
const COUNTED_WORDS = 5;

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
  let found: Ranked[] = [];
  for (const { lookup, ranks } of passesOf(storage, namespace, matcher, search)) {
    const matches = (nameKey: string) => ranks.includes(matcher.rank(nameKey) ?? Number.NaN);
    // Nothing that comes later is better: of a lower rank, or changed earlier.
    const isOrdered = isByRank || lookup.by === 'change';
    for await (const items of piecesOf(storage, namespace, search, lookup, matches)) {
      signal.throwIfAborted();
      for (const item of items)
        if (isWanted(item, search)) found.push({ item, rank: matcher.rank(item.name) ?? 0 });
      if (isOrdered && enough(found, isByRank)) return best(found, order).map(({ item }) => item);
      // What is not among the best now will not be later: a word that is in a million names must not fill the memory.
      if (found.length >= 2 * MATCHES_MAX) found = best(found, order);
    }
  }
  return best(found, order).map(({ item }) => item);
}

/** Whether more are found than are told. In the order of time folders come last, whenever they were made. */
function enough(found: readonly Ranked[], isByRank: boolean): boolean {
  if (found.length < MATCHES_MAX) return false;
  return isByRank || found.filter(({ item }) => item.kind !== 'folder').length >= MATCHES_MAX;
}

/** Ways through the names, and which ranks each is to find: the best first, when they are told in that order. */
function passesOf(
  storage: Storage,
  namespace: string,
  { words, whole }: NameMatcher,
  { order, extensions }: Search,
): { readonly lookup: NameLookup; readonly ranks: readonly number[] }[] {
  const exactly: NameLookup = { by: 'name', text: whole, exact: true };
  const rarest = rarestOf(storage, namespace, [...words, ...extensionWords(extensions)]);
  // No name can fit, but the folder may still be refused.
  if (whole === '' || rarest?.names === 0) return [{ lookup: exactly, ranks: [2] }];
  const isByRank = order === 'relevance';
  const isHelpful = rarest !== undefined && (isByRank || rarest.names < COMMON_NAMES);
  const all: NameLookup = isHelpful ? { by: 'word', ...rarest.word } : { by: 'change' };
  if (!isByRank) return [{ lookup: all, ranks: [2, 1, 0] }];
  return [
    { lookup: exactly, ranks: [2] },
    { lookup: { by: 'name', text: whole, exact: false }, ranks: [1] },
    { lookup: all, ranks: [0] },
  ];
}

/** The word that the fewest names have; of very long queries the longest words are looked at. */
function rarestOf(
  storage: Storage,
  namespace: string,
  words: NameMatcher['words'],
): { readonly word: NameMatcher['words'][number]; readonly names: number } | undefined {
  const [rarest] = words
    .toSorted((one, other) => other.text.length - one.text.length)
    .slice(0, COUNTED_WORDS)
    .map((word) => ({ word, names: storage.countNames(namespace, word, COMMON_NAMES) }))
    .sort((one, other) => one.names - other.names);
  return rarest;
}

/** A name that ends with the only extension wanted has it among its words. */
function extensionWords(extensions: readonly string[]): NameMatcher['words'] {
  const [text = ''] = extensions;
  return extensions.length === 1 && /^[a-z0-9]+$/.test(text) ? [{ text, exact: true }] : [];
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
