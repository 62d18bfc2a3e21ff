import { BadArgument, failure, refused } from '../api/failures.ts';
import { metadata } from '../api/metadata.ts';
import { addressOf, pathOrRoot } from '../api/paths.ts';
import { LISTING } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, type Route, rpc } from '../api/route.ts';
import {
  boolean,
  integer,
  list,
  optional,
  required,
  string,
  struct,
  union,
  withDefault,
} from '../api/schema.ts';
import type { CATEGORIES } from '../search/category.ts';
import { highlightsOf, type Match, matchesOf, type Search } from '../search/search.ts';

const QUERY_CHARACTERS_MAX = 1000;
const RESULTS_MAX = 1000;
const RESULTS_DEFAULT = 100;

/** Maximum length of lists in the options. */
const FILTERS_MAX = 100;

const category = union({
  image: null,
  document: null,
  pdf: null,
  spreadsheet: null,
  presentation: null,
  audio: null,
  video: null,
  folder: null,
  paper: null,
  others: null,
} satisfies Record<(typeof CATEGORIES)[number], null>);

const relevance = { tag: 'relevance' } as const;
const active = { tag: 'active' } as const;

const options = struct({
  path: withDefault(pathOrRoot, ''),
  max_results: withDefault(integer({ min: 1, max: RESULTS_MAX }), RESULTS_DEFAULT),
  order_by: withDefault(union({ relevance: null, last_modified_time: null }), relevance),
  file_status: withDefault(union({ active: null, deleted: null }), active),
  // No effect, because only names are searched.
  filename_only: withDefault(boolean, false),
  file_extensions: withDefault(list(string(), { max: FILTERS_MAX }), []),
  file_categories: withDefault(list(category, { max: FILTERS_MAX }), []),
  account_id: optional(string({ minLength: 40, maxLength: 40 })),
});

const searchFields = {
  query: required(string({ maxLength: QUERY_CHARACTERS_MAX })),
  options: withDefault(options, options({})),
  match_field_options: withDefault(struct({ include_highlights: withDefault(boolean, false) }), {
    include_highlights: false,
  }),
  // Deprecated form of the same option in `match_field_options`.
  include_highlights: withDefault(boolean, false),
};

const searchArgument = struct(searchFields);

type SearchArgument = ReturnType<typeof searchArgument>;

/** Searches the names of files and folders. */
const search = rpc({
  name: 'files/search_v2',
  scope: 'files.metadata.read',
  argument: searchFields,
  refusals: LISTING,
  handle: (call) => page(call, call.argument, 0, undefined),
});

/** Returns the next page of results, and searches again when they are no longer kept. */
const searchContinue = rpc({
  name: 'files/search/continue_v2',
  scope: 'files.metadata.read',
  argument: { cursor: required(string({ minLength: 1 })) },
  refusals: LISTING,
  handle: (call) => {
    const { start, found, argument } = fromCursor(call.argument.cursor);
    return page(call, argument, start, found);
  },
});

const START_MAX = 9_999;

/** The first version: pages are offsets into the matches, and each page repeats the search. */
const searchV1 = rpc({
  name: 'files/search',
  scope: 'files.metadata.read',
  argument: {
    path: required(pathOrRoot),
    query: required(string({ maxLength: QUERY_CHARACTERS_MAX })),
    start: withDefault(integer({ min: 0, max: START_MAX }), 0),
    max_results: withDefault(integer({ min: 1, max: RESULTS_MAX }), RESULTS_DEFAULT),
    mode: withDefault(union({ filename: null, filename_and_content: null, deleted_filename: null }), {
      tag: 'filename',
    } as const),
  },
  refusals: LISTING,
  handle: async (call) => {
    const { path, query, start, max_results: limit, mode } = call.argument;
    const file_status = mode.tag === 'deleted_filename' ? 'deleted' : 'active';
    const found = await foundBy(call, searchArgument({ query, options: { path, file_status } }));
    const end = Math.min(start + limit, found.length);
    const matches = found.slice(start, end).map((match) => ({
      match_type: { '.tag': 'filename' },
      metadata: metadata(match),
    }));
    return { matches, more: end < found.length, start: end };
  },
});

export const SEARCH_ROUTES: readonly Route[] = [search, searchContinue, searchV1];

async function page(
  call: ApiCall<ApiCaller>,
  argument: SearchArgument,
  start: number,
  kept: string | undefined,
): Promise<object> {
  const { caller, searches } = call;
  const { max_results: limit } = argument.options;
  const known = kept === undefined ? undefined : searches.find(caller.account.id, kept);
  const found = known ?? (await foundBy(call, argument));
  const end = start + limit;
  const hasMore = end < found.length;
  return {
    matches: found.slice(start, end).map((match) => matchOf(match, argument)),
    has_more: hasMore,
    ...(hasMore && {
      cursor: toCursor(argument, end, known && kept ? kept : searches.keep(caller.account.id, found)),
    }),
  };
}

async function foundBy(
  { storage, caller, signal }: ApiCall<ApiCaller>,
  argument: SearchArgument,
): Promise<readonly Match[]> {
  if (argument.query.trim() === '') throw refused(failure('invalid_argument', invalidArgument));
  // All files were written by the account itself.
  const author = argument.options.account_id;
  if (author !== undefined && author !== caller.account.id) return [];
  return await matchesOf(storage, caller.owner.namespace, searchOf(argument, caller), signal);
}

const invalidArgument = { invalid_argument: 'query must not be empty' };

function searchOf({ query, options: given }: SearchArgument, { account }: ApiCaller): Search {
  return {
    query,
    path: given.path === '/' ? '' : addressOf(given.path, account.namespace),
    status: given.file_status.tag,
    order: given.order_by.tag,
    extensions: given.file_extensions.map((one) => one.toLowerCase().replace(/^\./, '')),
    categories: given.file_categories.map(({ tag }) => tag),
  };
}

/** SearchMatchV2. */
function matchOf(match: Match, argument: SearchArgument): object {
  const isMarked = argument.include_highlights || argument.match_field_options.include_highlights;
  return {
    metadata: { '.tag': 'metadata', metadata: metadata(match) },
    match_type: { '.tag': 'filename' },
    ...(isMarked && { highlight_spans: highlightsOf(argument.query, match) }),
  };
}

/**
 * Returns a cursor with the whole search and the offset. It needs no signature, because a search finds only the
 * caller's own items.
 */
function toCursor({ query, options: given, ...more }: SearchArgument, start: number, found: string): string {
  const tags = {
    order_by: given.order_by.tag,
    file_status: given.file_status.tag,
    file_categories: given.file_categories.map(({ tag }) => tag),
  };
  const argument = { query, options: { ...given, ...tags }, ...more };
  return Buffer.from(JSON.stringify({ start, found, argument })).toString('base64url');
}

const cursorContent = struct({
  start: required(integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
  found: required(string()),
  argument: required(searchArgument),
});

function fromCursor(cursor: string): ReturnType<typeof cursorContent> {
  try {
    return cursorContent(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
  } catch {
    throw new BadArgument('cursor: unsupported cursor type');
  }
}
