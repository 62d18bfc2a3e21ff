import { type Instant, instantIn, LONG_AGO, remainingMs } from '../util/clock.ts';
import { keyOf, type Path, PathError, parentOf, ROOT } from '../util/path.ts';
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
import type { Change, Entry, EntryLocation, FeedChange, ListOptions, Page, Remote } from './remote.ts';
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

/** Maximum number of folders with parts of long names that are listed at the same time. */
const PARTS_AT_ONCE = 8;

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
  more: LookupOptions = {},
): Promise<Entry | undefined> {
  const wirePath = root.toWire(path);
  if (wirePath === '')
    throw new ApiError(
      'bad-request',
      'files/get_metadata: the service does not describe the root of an account',
    );
  return metadataOf(caller, wirePath, more, (metadata) => {
    const entry = root.entry(metadata);
    // The name of the drive's root is not part of the drive.
    return path === ROOT ? { ...entry, name: '' } : entry;
  });
}

function locationOf(
  { caller, root }: Client,
  id: string,
  signal: AbortSignal | undefined,
): Promise<EntryLocation | undefined> {
  return metadataOf(caller, id, { signal }, (metadata) => root.locationOf(metadata));
}

/** How a lookup is called. */
interface LookupOptions {
  readonly signal?: AbortSignal | undefined;
  readonly trouble?: Trouble;
}

/** `get_metadata` of a path on the wire or an id. Returns `undefined` only when the service said that nothing is there. */
async function metadataOf<T>(
  caller: Client['caller'],
  path: string,
  options: LookupOptions,
  read: (metadata: Metadata) => T,
): Promise<T | undefined> {
  const arg: GetMetadataArg = { path };
  try {
    return await caller.call({
      request: rpcRequest('files/get_metadata', arg),
      lane: 'metadata',
      read: ({ text }) => read(parsed<Metadata>(text)),
      ...options,
    });
  } catch (error) {
    if (isApiFailure(error, 'not-found')) return undefined;
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
  const { recursive, withDeleted, ahead } = options;
  const arg: ListFolderArg = {
    path: folder.wirePath,
    recursive,
    ...(withDeleted && { include_deleted: true }),
    limit: PAGE_ENTRIES,
  };
  /** The kinds of the folders in it that are parts of names, by name. */
  const parts = new Map<string, Metadata['.tag']>();
  const change = (metadata: Metadata): Change | undefined => {
    if (client.root.isPart(metadata)) {
      parts.set(metadata.name, metadata['.tag']);
      return undefined;
    }
    // Direct children get the path of the listed folder, in the letter case of the request.
    const found = client.root.change(metadata, recursive ? undefined : folder);
    return found && !isItself(found, folder.path) ? found : undefined;
  };
  const how: PageOptions<Change> = { lane: ahead ? 'prefetch' : 'metadata', signal, change };
  const seen = new Set<string>();
  let known = 0;
  let stalledPages = 0;
  let next = await page(client, 'files/list_folder', arg, how);
  for (;;) {
    addNames(next, seen);
    const isNews = seen.size + parts.size > known;
    known = seen.size + parts.size;
    stalledPages = isNews ? 0 : stalledPages + 1;
    if (stalledPages > STALLED_PAGES_MAX) throw endless('files/list_folder/continue');
    yield next;
    if (!next.hasMore) break;
    next = await page(client, 'files/list_folder/continue', { cursor: next.cursor }, how);
  }
  if (!recursive) yield* longNamesIn(client, folder, parts, options, signal);
}

/**
 * Yields the members of a folder with long names: at the service they are in its folders `parts`, which are no level in the
 * drive.
 */
async function* longNamesIn(
  client: ListingClient,
  folder: ListedFolder,
  parts: ReadonlyMap<string, Metadata['.tag']>,
  options: ListOptions,
  signal: AbortSignal | undefined,
): AsyncIterable<Page> {
  const names = [...parts.keys()].filter((name) => parts.get(name) === 'folder');
  for (let at = 0; at < names.length; at += PARTS_AT_ONCE) {
    const listed = names
      .slice(at, at + PARTS_AT_ONCE)
      .map((name) => ({ ...folder, wirePath: `${folder.wirePath}/${name}`, parts: [...folder.parts, name] }))
      .map((part) => allPagesOf(client, part, options, signal));
    yield* (await Promise.all(listed)).flat();
  }
  // What was in a part that was deleted is in a listing of everything below only.
  if (names.length === parts.size) return;
  for await (const each of pagesOf(client, folder, { ...options, recursive: true }, signal)) {
    const isIn = (change: Change) => change.kind === 'deleted' && isMember(change.path, folder.path);
    yield { ...each, changes: each.changes.filter(isIn) };
  }
}

async function allPagesOf(
  client: ListingClient,
  folder: ListedFolder,
  options: ListOptions,
  signal: AbortSignal | undefined,
): Promise<readonly Page[]> {
  const pages: Page[] = [];
  try {
    for await (const each of pagesOf(client, folder, options, signal)) pages.push(each);
  } catch (error) {
    // It has just been removed, and with it what was in it.
    if (!isApiFailure(error, 'not-found', 'not-folder')) throw error;
  }
  return pages;
}

function isMember(path: Path, folder: Path): boolean {
  return keyOf(parentOf(path)) === keyOf(folder);
}

/** `list_folder/continue` with a cursor of the whole drive. */
function changesSince(
  client: ListingClient,
  cursor: string,
  signal: AbortSignal | undefined,
): Promise<Page<FeedChange>> {
  const { root } = client;
  const change = (metadata: Metadata): FeedChange | undefined => {
    if (!root.isPart(metadata)) return root.change(metadata);
    const path = metadata['.tag'] === 'deleted' ? root.folderOfPart(metadata) : undefined;
    // All entries whose names begin with it were removed.
    return path && { kind: 'unknown-below', path };
  };
  return page(client, 'files/list_folder/continue', { cursor }, { lane: 'metadata', signal, change });
}

function addNames({ changes }: Page, seen: Set<string>): void {
  for (const change of changes) seen.add(keyOf(change.kind === 'put' ? change.entry.path : change.path));
}

function endless(route: string): ApiError {
  const message = `${route}: the storage service sends page after page without anything new; try again later`;
  return new ApiError('unavailable', message);
}

interface PageOptions<C extends FeedChange> {
  readonly lane: Lane;
  readonly signal: AbortSignal | undefined;
  /** Reads an entry of the page; returns `undefined` for one that is left out. */
  readonly change: (metadata: Metadata) => C | undefined;
}

/** Requests one page of a listing or of the change feed. */
function page<C extends FeedChange>(
  { caller, log, loggedKinds }: ListingClient,
  route: string,
  arg: ListFolderArg | ListFolderContinueArg,
  { lane, signal, change }: PageOptions<C>,
): Promise<Page<C>> {
  const changesOf = (metadata: Metadata): C[] => {
    try {
      const found = change(metadata);
      return found ? [found] : [];
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
      return { changes: entries.flatMap(changesOf), cursor, hasMore };
    },
  });
}

/** Whether a change describes the listed folder itself, as in a recursive listing. */
function isItself(change: Change, folder: Path): boolean {
  return change.kind === 'put' && keyOf(change.entry.path) === keyOf(folder);
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
