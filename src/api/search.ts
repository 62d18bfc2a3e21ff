import { PathError, ROOT } from '../util/path.ts';
import type { Metadata } from '../wire/files.ts';
import type { SearchV2Arg, SearchV2ContinueArg, SearchV2Result } from '../wire/search.ts';
import type { Client } from './context.ts';
import { type DriveRoot, UnknownKind } from './drive-root.ts';
import type { Entry, Remote } from './remote.ts';
import { parsed, rpcRequest } from './request.ts';

/** Number of matches on a page: about a screen or two. */
const PAGE_MATCHES = 100;

/** The calls that search: `search_v2`, and `search/continue_v2` for later pages. */
export function searchOf({ caller, root }: Client): Pick<Remote, 'search'> {
  return {
    search(query, cursor, signal) {
      const request =
        cursor === undefined
          ? rpcRequest('files/search_v2', firstPage(root, query))
          : rpcRequest('files/search/continue_v2', { cursor } satisfies SearchV2ContinueArg);
      return caller.call({
        request,
        lane: 'metadata',
        signal,
        read: ({ text }) => {
          const { matches, has_more: hasMore, cursor: next } = parsed<SearchV2Result>(text);
          if (typeof hasMore !== 'boolean' || (hasMore && typeof next !== 'string'))
            throw new TypeError('a page without has_more, or without a cursor to the next one');
          const entries = matches.flatMap(({ metadata }) =>
            metadata['.tag'] === 'metadata' ? (entryOf(root, metadata.metadata) ?? []) : [],
          );
          return { entries, ...(hasMore && next !== undefined && { cursor: next }) };
        },
      });
    },
  };
}

function firstPage(root: DriveRoot, query: string): SearchV2Arg {
  return {
    query,
    options: {
      path: root.toWire(ROOT),
      max_results: PAGE_MATCHES,
      file_status: { '.tag': 'active' },
      filename_only: true,
    },
  };
}

/** Returns a match; `undefined` for one that the drive does not show, which must not hide the others. */
function entryOf(root: DriveRoot, metadata: Metadata): Entry | undefined {
  // A shared folder that the account has not mounted has no path.
  if (metadata.path_display === undefined && metadata.path_lower === undefined) return undefined;
  try {
    const change = root.change(metadata);
    return change?.kind === 'put' ? change.entry : undefined;
  } catch (error) {
    if (error instanceof PathError || error instanceof UnknownKind) return undefined;
    throw error;
  }
}
