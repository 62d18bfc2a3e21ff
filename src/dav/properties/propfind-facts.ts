import { FileError } from '../../drive/errors.ts';
import type { Entry, SharedLink } from '../../drive/files.ts';
import type { Lock } from '../../state/locks.ts';
import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { hrefOf } from '../href.ts';
import type { Context } from '../method.ts';
import { statusOf } from '../status.ts';
import { type Facts, NO_FACTS, Withheld } from './live.ts';
import type { PropertySet } from './set.ts';

/** Each costs a call of the service, which limits them; a folder this size is asked about as a whole. */
const LINK_ROWS_MAX = 100;

const NO_LOCKS: readonly Lock[] = [];

const TOO_MANY_LINKS = new Withheld(
  403,
  `shared-link is shown with Depth 0, or with Depth 1 in a folder of up to ${LINK_ROWS_MAX} entries`,
);

/**
 * All that the rows of one answer need beside their entries, asked for at once. `entries` are the resources
 * of the answer, or `undefined` when they are not known yet (depth infinity).
 */
export async function factsOf(
  context: Context,
  set: PropertySet,
  entries: readonly Entry[] | undefined,
): Promise<Facts> {
  const [locks, space, links] = await Promise.all([
    set.needs('locks') ? locksAround(context, entries) : [],
    set.needs('space') ? context.drive.files.freeSpace(context.signal) : undefined,
    set.needs('link') ? linksOf(context, entries) : undefined,
  ]);
  if (locks.length === 0 && !space && !set.needs('link')) return NO_FACTS;
  const locksOf = lockLookup(locks);
  const isPlain = !space && !set.needs('link');
  return {
    nowMs: context.clock.now(),
    locksOf,
    lockHref,
    space,
    linkOf: (entry) => (links ? links.get(entry.id) : TOO_MANY_LINKS),
    isPlain: (entry) => isPlain && locksOf(entry).length === 0,
  };
}

async function locksAround(
  { drive, path, clock }: Context,
  entries: readonly Entry[] | undefined,
): Promise<readonly Lock[]> {
  const nowMs = clock.now();
  const covering = drive.state.locks.covering(nowMs, path);
  if (entries?.length === 1) return covering;
  return [...(await covering), ...(await drive.state.locks.within(nowMs, path))];
}

/** A lock above a resource is that of a collection. */
function lockHref({ root }: Lock, entry: Entry): string {
  return hrefOf(root, entry.kind === 'folder' || keyOf(root) !== keyOf(entry.path));
}

/** The locks that protect an entry: at its path, and above it with depth infinity. */
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
  // Rows come folder by folder, and all in one inherit the same.
  let before: { readonly start: string; readonly locks: readonly Lock[] } | undefined;
  const inheritedAt = (path: Path): readonly Lock[] => {
    if (path === ROOT) return NO_LOCKS;
    const slash = path.lastIndexOf('/');
    if (!before || before.start.length !== slash || !path.startsWith(before.start))
      before = { start: path.slice(0, slash), locks: inheritedIn(parentOf(path)) };
    return before.locks;
  };
  return ({ path }) => {
    const own = at(path);
    const above = inheritedAt(path);
    return own.length === 0 ? above : [...own, ...above];
  };
}

async function linksOf(
  context: Context,
  entries: readonly Entry[] | undefined,
): Promise<ReadonlyMap<string, SharedLink | Withheld> | undefined> {
  if (!entries || entries.length > LINK_ROWS_MAX) return undefined;
  const links = await Promise.all(
    entries.map(async (entry) => [entry.id, await linkOf(context, entry)] as const),
  );
  return new Map(links.filter((pair): pair is [string, SharedLink | Withheld] => pair[1] !== undefined));
}

/** A link that cannot be asked for now leaves the rest of the answer as it is. */
async function linkOf(
  { drive, signal, client }: Context,
  entry: Entry,
): Promise<SharedLink | Withheld | undefined> {
  try {
    return await drive.files.sharedLink(entry.path, signal);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return new Withheld(statusOf(error, client), error.message);
  }
}
