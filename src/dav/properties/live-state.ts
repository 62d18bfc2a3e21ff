import { FileError } from '../../drive/errors.ts';
import type { Entry, SharedLink } from '../../drive/files.ts';
import type { Lock } from '../../state/locks.ts';
import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { clientOf } from '../clients.ts';
import { type Context, presentFiles } from '../context.ts';
import { statusOf } from '../failures.ts';
import { hrefOf } from '../resource-url.ts';
import { tokenNow } from '../sync/sync-page.ts';
import { type LiveState, NO_LIVE_STATE, type PropertyNeed, UnavailableProperty } from './live-properties.ts';
import type { PropertySelection } from './property-selection.ts';
import { reportsOf } from './reports.ts';

/** Maximum number of rows with shared links. Each costs a call of the service, which limits their rate. */
const LINK_ROWS_MAX = 100;

const NO_LOCKS: readonly Lock[] = [];

const TOO_MANY_LINKS = new UnavailableProperty(
  403,
  `shared-link is available with Depth 0, or with Depth 1 in a folder of up to ${LINK_ROWS_MAX} entries`,
);

/** The resources of an answer. */
interface Resources {
  /** Returns `undefined` with depth infinity, where they are not known yet. */
  readonly entries: () => readonly Entry[] | undefined;
  /** Whether the resource at the request's path is the only one. */
  readonly isAlone: boolean;
}

/** State that every answer which shows it needs, whatever the user's rights and locks. */
const LOADED_NEEDS: readonly PropertyNeed[] = ['quota', 'link', 'sync', 'reports'];

/** Loads the state that the rows of one answer need: `NO_LIVE_STATE` for most of them. */
export async function liveStateOf(
  context: Context,
  { needs }: PropertySelection,
  resources: Resources,
): Promise<LiveState> {
  const locks = needs.has('locks') ? await locksAround(context, resources.isAlone) : NO_LOCKS;
  const isReadOnly = needs.has('rights') ? context.drive.isReadOnly : undefined;
  const isEmpty = !isReadOnly && !LOADED_NEEDS.some((need) => needs.has(need));
  if (locks.length === 0 && isEmpty) return NO_LIVE_STATE;
  const entries = resources.entries();
  const [quota, links, token] = await Promise.all([
    needs.has('quota') ? context.drive.files.freeSpace(context.exchange.signal, context.path) : undefined,
    needs.has('link') ? linksOf(context, entries) : undefined,
    needs.has('sync') ? tokenOf(context, entries) : undefined,
  ]);
  const locksOf = lockLookup(locks);
  return {
    nowMs: context.clock.now(),
    locksOf,
    lockHref: (lock, entry) => lockHref(context, lock, entry),
    quota,
    isReadOnly: ({ path }) => isReadOnly?.(path) ?? false,
    reportsOf: (entry) => reportsOf(context.drive, entry),
    syncTokenOf: () => token,
    linkOf: (entry) => (links ? links.get(entry.id) : TOO_MANY_LINKS),
    isEmptyFor: (entry) => isEmpty && locksOf(entry).length === 0,
  };
}

async function locksAround({ drive, path, clock }: Context, isAlone: boolean): Promise<readonly Lock[]> {
  const { locks } = drive.state;
  const nowMs = clock.now();
  if (isAlone) return locks.covering(nowMs, path);
  const [covering, within] = await Promise.all([locks.covering(nowMs, path), locks.within(nowMs, path)]);
  return covering.length + within.length === 0 ? NO_LOCKS : [...covering, ...within];
}

/** A lock whose root is above the resource has a collection as its root. */
function lockHref({ exchange }: Context, { root }: Lock, entry: Entry): string {
  return hrefOf(exchange, root, entry.kind === 'folder' || keyOf(root) !== keyOf(entry.path));
}

/** Returns a function that finds the locks covering an entry: at its path, and above it with depth infinity. */
function lockLookup(locks: readonly Lock[]): (entry: Entry) => readonly Lock[] {
  const byRoot = new Map<string, Map<string, Lock>>();
  for (const lock of locks) {
    const key = keyOf(lock.root);
    byRoot.set(key, (byRoot.get(key) ?? new Map()).set(lock.token, lock));
  }
  const at = (path: Path): readonly Lock[] => {
    const found = byRoot.get(keyOf(path));
    return found ? [...found.values()] : NO_LOCKS;
  };
  const inheritedIn = (folder: Path): readonly Lock[] => [
    ...at(folder).filter((lock) => lock.depth === 'infinity'),
    ...(folder === ROOT ? NO_LOCKS : inheritedIn(parentOf(folder))),
  ];
  // Rows arrive folder by folder, and all members of a folder inherit the same locks.
  let previous: { readonly start: string; readonly locks: readonly Lock[] } | undefined;
  const inheritedAt = (path: Path): readonly Lock[] => {
    if (path === ROOT) return NO_LOCKS;
    const slash = path.lastIndexOf('/');
    if (!previous || previous.start.length !== slash || !path.startsWith(previous.start))
      previous = { start: path.slice(0, slash), locks: inheritedIn(parentOf(path)) };
    return previous.locks;
  };
  return ({ path }) => {
    const own = at(path);
    const above = inheritedAt(path);
    return own.length === 0 ? above : [...own, ...above];
  };
}

const TOKEN_ALONE = new UnavailableProperty(403, 'sync-token is available with Depth 0');

/**
 * Returns the token of a folder. With members in the same answer it might be of a later moment than they are, and a client
 * would miss what changed in between.
 */
async function tokenOf(
  { drive, exchange, request }: Context,
  entries: readonly Entry[] | undefined,
): Promise<string | UnavailableProperty | undefined> {
  if (request.headers['depth'] !== '0') return TOKEN_ALONE;
  const [folder] = entries ?? [];
  if (!drive.changeLog || folder?.kind !== 'folder' || drive.historyFolders?.owns(folder.path))
    return undefined;
  return tokenNow({ files: presentFiles(drive), log: drive.changeLog, folder, signal: exchange.signal });
}

async function linksOf(
  context: Context,
  entries: readonly Entry[] | undefined,
): Promise<ReadonlyMap<string, SharedLink | UnavailableProperty> | undefined> {
  if (!entries || entries.length > LINK_ROWS_MAX) return undefined;
  const links = await Promise.all(
    entries.map(async (entry) => [entry.id, await linkOf(context, entry)] as const),
  );
  return new Map(
    links.filter((pair): pair is [string, SharedLink | UnavailableProperty] => pair[1] !== undefined),
  );
}

/** A failure to load a link affects only that property. */
async function linkOf(
  { drive, exchange, request }: Context,
  entry: Entry,
): Promise<SharedLink | UnavailableProperty | undefined> {
  try {
    return await drive.files.sharedLink(entry.path, exchange.signal);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return new UnavailableProperty(statusOf(error, clientOf(request)), error.message);
  }
}
