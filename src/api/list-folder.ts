import { type Instant, instantIn, LONG_AGO, remainingMs } from '../util/clock.ts';
import { keyOf, type Path, PathError, ROOT } from '../util/path.ts';
import type {
  GetMetadataArg,
  ListFolderArg,
  ListFolderContinueArg,
  ListFolderGetLatestCursorResult,
  ListFolderLongpollArg,
  ListFolderLongpollResult,
  ListFolderResult,
  Metadata,
} from '../wire/files.ts';
import type { Client } from './context.ts';
import { type FolderOfEntry, UnknownKind } from './drive-root.ts';
import { ApiError, isApiFailure } from './errors.ts';
import { askedWaitMs } from './failure.ts';
import type { Lane } from './queue.ts';
import type { Change, Entry, EntryLocation, ListOptions, Page, Remote } from './remote.ts';
import { parsed, rpcRequest } from './request.ts';
import type { Trouble } from './retry.ts';

/** Maximum page size of `list_folder`: fewer pages are fewer calls. */
const PAGE_ENTRIES = 2000;

/** The timeouts that `longpoll` accepts, in seconds. */
const POLL_SECONDS = { min: 30, max: 480 };

/** How much later than its timeout a long poll may be answered, in ms: the service adds up to 90 s. */
const POLL_SPREAD_MS = 95_000;

export type Listing = Pick<
  Remote,
  'stat' | 'locate' | 'list' | 'latestCursor' | 'awaitChange' | 'changesSince'
>;

/** Maximum number of consecutive pages of a listing without a new name. More show that the service loops. */
const STALLED_PAGES_MAX = 100;

/** Maximum number of unknown kinds of entries that are logged. */
const KINDS_LOGGED_MAX = 100;

/** The calls for entries, listings and the change feed. */
export function listingOf(context: Client): Listing {
  const client: ListingClient = { ...context, loggedKinds: new Set() };
  return {
    stat: (path, signal) => statOf(client, path, { signal }),
    locate: (id, signal) => locationOf(client, id, signal),
    list: (folder, options, signal) =>
      pagesOf(client, { path: folder, wirePath: client.root.toWire(folder), parts: [] }, options, signal),
    latestCursor: (signal) => latestCursor(client, signal),
    awaitChange: changeWaiter(client),
    changesSince: (cursor, signal) => changesSince(client, cursor, signal),
  };
}

/** `get_metadata`. Returns `undefined` only when the service said that nothing is at `path`. */
export async function statOf(
  { caller, root }: Client,
  path: Path,
  more: { readonly signal?: AbortSignal | undefined; readonly trouble?: Trouble } = {},
): Promise<Entry | undefined> {
  const wirePath = root.toWire(path);
  if (wirePath === '')
    throw new ApiError(
      'bad-request',
      'files/get_metadata: the service does not describe the root of an account',
    );
  const arg: GetMetadataArg = { path: wirePath };
  try {
    return await caller.call({
      request: rpcRequest('files/get_metadata', arg),
      lane: 'metadata',
      read: ({ text }) => {
        const entry = root.entry(parsed<Metadata>(text));
        // The name of the drive's root is not part of the drive.
        return path === ROOT ? { ...entry, name: '' } : entry;
      },
      ...more,
    });
  } catch (error) {
    if (error instanceof ApiError && error.failure === 'not-found') return undefined;
    throw error;
  }
}

async function locationOf(
  { caller, root }: Client,
  id: string,
  signal: AbortSignal | undefined,
): Promise<EntryLocation | undefined> {
  const arg: GetMetadataArg = { path: id };
  try {
    return await caller.call({
      request: rpcRequest('files/get_metadata', arg),
      lane: 'metadata',
      read: ({ text }) => root.locationOf(parsed<Metadata>(text)),
      signal,
    });
  } catch (error) {
    if (error instanceof ApiError && error.failure === 'not-found') return undefined;
    throw error;
  }
}

/** A folder to list: one of the drive, or one at the service that has parts of names in it. */
interface ListedFolder extends FolderOfEntry {
  readonly wirePath: string;
  readonly parts: readonly string[];
}

interface ListingClient extends Client {
  /** Unknown kinds of entries that have been logged. */
  readonly loggedKinds: Set<string>;
}

/** Yields the pages of a listing. An empty page need not be the last: only `has_more` tells. */
async function* pagesOf(
  client: ListingClient,
  folder: ListedFolder,
  options: ListOptions,
  signal: AbortSignal | undefined,
): AsyncIterable<Page> {
  const arg: ListFolderArg = {
    path: folder.wirePath,
    recursive: options.recursive,
    ...(options.withDeleted && { include_deleted: true }),
    limit: PAGE_ENTRIES,
  };
  const how: PageOptions = {
    lane: options.ahead ? 'prefetch' : 'metadata',
    signal,
    folder,
    recursive: options.recursive,
  };
  const seen = new Set<string>();
  let next = await page(client, 'files/list_folder', arg, how);
  let stalledPages = isNews(next, seen) ? 0 : 1;
  yield next;
  yield* longNamesIn(client, folder, next, options, signal);
  while (next.hasMore) {
    next = await page(client, 'files/list_folder/continue', { cursor: next.cursor }, how);
    stalledPages = isNews(next, seen) ? 0 : stalledPages + 1;
    if (stalledPages > STALLED_PAGES_MAX) throw endless('files/list_folder/continue');
    yield next;
    yield* longNamesIn(client, folder, next, options, signal);
  }
}

/** Yields the entries with long names: they are in folders that are parts of their names, which is no level in the drive. */
async function* longNamesIn(
  client: ListingClient,
  folder: ListedFolder,
  { parts }: ReadPage,
  options: ListOptions,
  signal: AbortSignal | undefined,
): AsyncIterable<Page> {
  if (options.recursive) return;
  for (const { '.tag': tag, name } of parts) {
    if (tag === 'deleted') continue;
    const part = { ...folder, wirePath: `${folder.wirePath}/${name}`, parts: [...folder.parts, name] };
    try {
      yield* pagesOf(client, part, options, signal);
    } catch (error) {
      // It has just been removed, and with it what it had.
      if (!isApiFailure(error, 'not-found')) throw error;
    }
  }
}

/**
 * `list_folder/continue` with the cursor of the drive. The removal of a folder that is a part of names removes all entries
 * with that part, which it does not name: it counts as missed changes.
 */
async function changesSince(
  client: ListingClient,
  cursor: string,
  signal: AbortSignal | undefined,
): Promise<Page> {
  const how: PageOptions = { lane: 'metadata', signal };
  const { parts, ...changes } = await page(client, 'files/list_folder/continue', { cursor }, how);
  if (parts.some((part) => part['.tag'] === 'deleted'))
    throw new ApiError('reset', 'files/list_folder/continue: a folder with parts of long names was removed');
  return changes;
}

/** Adds the names of a page to `seen`. Returns whether one of them is new. */
function isNews({ changes }: Page, seen: Set<string>): boolean {
  const before = seen.size;
  for (const change of changes) seen.add(keyOf(change.kind === 'put' ? change.entry.path : change.path));
  return seen.size > before;
}

function endless(route: string): ApiError {
  const message = `${route}: the storage service sends page after page without anything new; try again later`;
  return new ApiError('unavailable', message);
}

interface PageOptions {
  readonly lane: Lane;
  readonly signal: AbortSignal | undefined;
  /** Absent for the change feed. */
  readonly folder?: ListedFolder;
  readonly recursive?: boolean;
}

interface ReadPage extends Page {
  /** The folders on the page that are, or were, only parts of names. */
  readonly parts: readonly Metadata[];
}

/** Requests one page of a listing or of the change feed. */
function page(
  { caller, root, log, loggedKinds }: ListingClient,
  route: string,
  arg: ListFolderArg | ListFolderContinueArg,
  { lane, signal, folder, recursive }: PageOptions,
): Promise<ReadPage> {
  // Direct children get the path of the listed folder, in the letter case of the request.
  const parent = recursive ? undefined : folder;
  const change = (metadata: Metadata): Change[] => {
    if (root.isPart(metadata)) return [];
    try {
      const found = root.change(metadata, parent);
      return found && !isItself(found, folder?.path) ? [found] : [];
    } catch (error) {
      if (error instanceof UnknownKind) {
        if (!loggedKinds.has(error.tag) && loggedKinds.size < KINDS_LOGGED_MAX)
          log.warn('skipping entries of an unknown kind', { kind: error.tag });
        loggedKinds.add(error.tag);
        return [];
      }
      if (!(error instanceof PathError)) throw error;
      // One name that no path can contain must not hide all others.
      log.warn('skipping an entry that no path can name', { reason: error.message });
      return [];
    }
  };
  return caller.call({
    request: rpcRequest(route, arg),
    lane,
    signal,
    read: ({ text }) => {
      const { entries, cursor, has_more: hasMore } = parsed<ListFolderResult>(text);
      if (typeof cursor !== 'string' || typeof hasMore !== 'boolean')
        throw new TypeError('a page without cursor or has_more');
      if (hasMore && 'cursor' in arg && arg.cursor === cursor)
        throw new TypeError('a page whose cursor leads to the same page');
      const parts = entries.filter((entry) => root.isPart(entry));
      return { changes: entries.flatMap(change), cursor, hasMore, parts };
    },
  });
}

/** Whether a change describes the listed folder itself, as in a recursive listing. */
function isItself(change: Change, folder: Path | undefined): boolean {
  return folder !== undefined && change.kind === 'put' && keyOf(change.entry.path) === keyOf(folder);
}

/** Requests a cursor for all later changes in the drive. */
function latestCursor(client: Client, signal: AbortSignal | undefined): Promise<string> {
  return client.caller.call({
    request: rpcRequest('files/list_folder/get_latest_cursor', {
      path: client.root.toWire(ROOT),
      recursive: true,
    }),
    lane: 'metadata',
    signal,
    read: ({ text }) => {
      const { cursor } = parsed<ListFolderGetLatestCursorResult>(text);
      if (typeof cursor !== 'string') throw new TypeError('no cursor');
      return cursor;
    },
  });
}

/** Returns the long poll. It goes to its own host, without a token, and waits only for the service's `backoff`. */
function changeWaiter({ caller, clock }: Client): Remote['awaitChange'] {
  let notBefore: Instant = LONG_AGO;
  return async (cursor, timeoutMs, signal) => {
    const backoffMs = remainingMs(clock, notBefore);
    if (backoffMs > 0) await clock.sleep(backoffMs, signal);
    const asked = Math.round(timeoutMs / 1000);
    const seconds = Math.min(POLL_SECONDS.max, Math.max(POLL_SECONDS.min, asked));
    const arg: ListFolderLongpollArg = { cursor, timeout: seconds };
    const result = await caller.call({
      request: {
        ...rpcRequest('files/list_folder/longpoll', arg, 'notify'),
        answerTimeout: { ms: seconds * 1000 + POLL_SPREAD_MS },
      },
      lane: undefined,
      signal,
      read: ({ text }) => {
        const read = parsed<ListFolderLongpollResult>(text);
        if (typeof read.changes !== 'boolean') throw new TypeError('no changes');
        return read;
      },
    });
    if (result.backoff !== undefined) notBefore = instantIn(clock, askedWaitMs(result.backoff * 1000));
    return result.changes;
  };
}
