import { FileError } from '../../drive/errors.ts';
import type { Entry, FolderEntry, LoggedChanges } from '../../drive/files.ts';
import { LongLoop } from '../../util/long-loop.ts';
import { KeyTree, keyOf, type Path, parentOf } from '../../util/path.ts';
import { DavError } from '../errors.ts';
import { Members, membersAfter, orderOf, type SyncedFolder } from './members.ts';
import {
  AGAIN_MAX,
  type KnownEntry,
  revisionMark,
  type SyncLevel,
  type SyncState,
  syncTokenOf,
  tooMuchToKnow,
  UNLOGGED_MAX,
} from './sync-token.ts';

/** One row of a report. */
export type SyncRow = { readonly entry: Entry } | { readonly gone: Path };

export interface SyncPage {
  readonly rows: readonly SyncRow[];
  /** What the client knows when it has these rows. */
  readonly state: SyncState;
  /** Whether the client has to ask again at once. */
  readonly isPartial: boolean;
}

/** The page that a client asks for. */
interface WantedPage extends SyncedFolder {
  readonly level: SyncLevel;
  readonly rowsMax: number;
  /** The entries that only davgate has, by key. */
  readonly unlogged: ReadonlyMap<string, KnownEntry>;
}

/** Returns the token of a client that knows all that the folder contains now. */
export async function tokenNow(synced: SyncedFolder): Promise<string> {
  const { log, folder, signal } = synced;
  const position = await log.position(folder.path, signal);
  const members = new Members(synced, new Map());
  const known = new Map<string, KnownEntry>();
  for (const [key, entry] of await unloggedIn(synced))
    if (await members.at(entry.path)) known.set(key, entry);
  return await syncTokenOf(log, folder, { level: undefined, position, known, again: [] });
}

/**
 * Returns the next rows for a client that knows `state`; `undefined` knows nothing. Rows are in the order of `orderOf`, at
 * most `rowsMax`. Throws `DavError` 403 `valid-sync-token` if the changes since `state` are not known any more.
 */
export async function syncPage(
  synced: SyncedFolder,
  state: SyncState | undefined,
  { level, rowsMax }: { readonly level: SyncLevel; readonly rowsMax: number },
): Promise<SyncPage> {
  // Before the changes: a pending write that lands meanwhile is then found twice, instead of not at all.
  const unlogged = await unloggedIn(synced);
  const page = await pageOf({ ...synced, unlogged, level, rowsMax }, state);
  return { ...page, state: withDoubts(page, unlogged, await unloggedIn(synced)) };
}

async function pageOf(wanted: WantedPage, state: SyncState | undefined): Promise<SyncPage> {
  const { log, folder, signal, level } = wanted;
  if (!state) {
    const position = await log.position(folder.path, signal);
    await requireStillThere(wanted);
    return initialPage(wanted, { level, position, known: new Map(), again: [] });
  }
  if (state.rest && state.rest.since === undefined) return initialPage(wanted, state, state.rest.after);
  return changesPage(wanted, state);
}

/** The change feed may just have told that the folder is gone. Throws `FileError`. */
async function requireStillThere({ files, folder: { path, id }, signal }: SyncedFolder): Promise<void> {
  const now = await files.stat(path, signal);
  if (!now) throw new FileError('not-found', `${path} does not exist`);
  if (now.id !== id) throw new FileError('busy', `${path} was replaced at this moment; ask again`);
}

/** What an entry of davgate alone was when its row was made is unknown if it changed meanwhile: it is reported again. */
function withDoubts(
  { rows, state }: SyncPage,
  before: ReadonlyMap<string, KnownEntry>,
  now: ReadonlyMap<string, KnownEntry>,
): SyncState {
  const known = new Map(state.known);
  for (const row of rows) {
    const key = 'entry' in row ? keyOf(row.entry.path) : '';
    if ('entry' in row && before.get(key)?.mark !== now.get(key)?.mark)
      known.set(key, { path: row.entry.path, mark: '' });
  }
  return { ...state, known };
}

/** Reports all members after `after`. Later changes are reported from the position on. */
async function initialPage(
  wanted: WantedPage,
  { position, known: before }: SyncState,
  after?: string,
): Promise<SyncPage> {
  const { folder, level, rowsMax, unlogged } = wanted;
  const known = new Map(before);
  const rows: SyncRow[] = [];
  let last: string | undefined;
  for await (const entry of membersAfter(wanted, folder, level, after)) {
    if (rows.length === rowsMax && last !== undefined) {
      const rest = { since: undefined, after: last, again: [] };
      return { rows, state: { level, position, rest, known, again: [] }, isPartial: true };
    }
    rows.push({ entry });
    last = orderOf(entry.path);
    const key = keyOf(entry.path);
    const own = unlogged.get(key);
    if (own) known.set(key, { ...own, path: entry.path });
  }
  return { rows, state: { level, position, known, again: [] }, isPartial: false };
}

/** Reports the members that have changed since the client's position. */
async function changesPage(wanted: WantedPage, state: SyncState): Promise<SyncPage> {
  const { log, folder, signal, level, rowsMax, unlogged } = wanted;
  const { rest } = state;
  const since = rest?.since ?? state.position;
  const changes = await log.since(folder.path, since, signal);
  if (!changes) throw invalidToken();
  const deleted = new Set(changes.deleted.map(keyOf));
  const after = rest?.after ?? '';
  const position = rest ? state.position : changes.position;
  const candidates = await candidatesFor(wanted, state, { ...changes, deletedKeys: deleted, after });
  const rows = new ChangeRows(state.known, unlogged, rest?.again ?? []);
  const members = new Members(wanted, candidates.counts);
  const isWhole = new Set(state.again.map(keyOf));
  const loop = new LongLoop();
  let done = after;
  const partial = (): SyncPage => {
    const next = { since, after: done, again: rows.again };
    const { known } = rows;
    return {
      rows: rows.all,
      state: { level, position, rest: next, known, again: state.again },
      isPartial: true,
    };
  };
  for (const [order, candidate] of candidates.sorted()) {
    if (order <= after) continue;
    if (loop.isDue) await loop.pause();
    if (order > candidates.end || rows.all.length >= rowsMax) return partial();
    done = order;
    if (rows.isBelowLast(order)) continue;
    const { path, isLogged } = candidate;
    const key = keyOf(path);
    const entry = candidate.entry ?? (await members.at(path));
    const isUnknown = level === 'infinite' && entry?.kind === 'folder';
    if (!entry && (isLogged || state.known.has(key))) rows.gone(path);
    // The client would keep the members of the folder that was here before, or does not have them because a file that
    // only davgate had was shown instead. A token does not tell which.
    else if (isUnknown && (deleted.has(key) || (state.known.has(key) && !isWhole.has(key))))
      rows.goneAndAgain(path);
    else if (entry) rows.there(entry);
    if (rows.again.length > AGAIN_MAX) throw invalidToken();
  }
  if (candidates.end !== NO_END) return partial();
  const next = { level, position, known: rows.known, again: rows.again };
  return { rows: rows.all, state: next, isPartial: rows.again.length > 0 };
}

/** Returns the refusal of a token, after which a client starts again (RFC 6578 §3.2). */
export function invalidToken(): DavError {
  return new DavError(
    403,
    'the sync-token is not valid here, or not any more; start again with an empty one',
    {
      precondition: 'valid-sync-token',
    },
  );
}

/** A path at which something may be different from what the client knows. */
interface Candidate {
  readonly path: Path;
  /** Whether the client may know an entry there, even if there is none now. */
  readonly isLogged: boolean;
  /** The entry that is there, if it has been looked up already. */
  readonly entry?: Entry;
}

/** Returns the paths at which something may be different from what the client knows. */
async function candidatesFor(
  wanted: WantedPage,
  state: SyncState,
  {
    changed,
    deletedKeys,
    after,
  }: Pick<LoggedChanges, 'changed'> & { readonly deletedKeys: ReadonlySet<string>; readonly after: string },
): Promise<Candidates> {
  const { folder, level, unlogged } = wanted;
  const candidates = new Candidates(folder, level);
  const loop = new LongLoop();
  for (const path of changed) {
    candidates.add({ path, isLogged: true });
    if (loop.isDue) await loop.pause();
  }
  for (const [key, { path, mark }] of unlogged)
    if (state.known.get(key)?.mark !== mark) candidates.add({ path, isLogged: false });
  for (const [key, { path }] of state.known) if (!unlogged.has(key)) candidates.add({ path, isLogged: true });
  for (const top of state.again) candidates.add({ path: top, isLogged: true });
  const trees = state.again.filter((top) => !deletedKeys.has(keyOf(top)));
  await addTrees(wanted, candidates, trees, after);
  return candidates;
}

/** Adds everything below some folders, as far as it can be in one page. */
async function addTrees(
  wanted: WantedPage,
  candidates: Candidates,
  tops: readonly Path[],
  after: string,
): Promise<void> {
  const loop = new LongLoop();
  let count = 0;
  for (const top of outermost(tops)) {
    const folder = await wanted.files.stat(top, wanted.signal);
    if (folder?.kind !== 'folder') continue;
    for await (const entry of membersAfter(wanted, folder, 'infinite', after)) {
      candidates.add({ path: entry.path, isLogged: false, entry });
      count += 1;
      if (loop.isDue) await loop.pause();
      if (count <= wanted.rowsMax) continue;
      // The others come after it.
      candidates.end = orderOf(entry.path);
      return;
    }
  }
}

/** Returns the folders that are not within another one, in the order of `orderOf`. */
function outermost(folders: readonly Path[]): readonly Path[] {
  const sorted = [...new Map(folders.map((folder) => [orderOf(folder), folder]))];
  sorted.sort(([one], [other]) => (one < other ? -1 : 1));
  let last: string | undefined;
  return sorted.flatMap(([order, folder]) => {
    if (last !== undefined && order.startsWith(`${last}\0`)) return [];
    last = order;
    return folder;
  });
}

/** Comes after all members. */
const NO_END = '\uffff';

/** The paths to look at, in the order of `orderOf`. */
class Candidates {
  readonly #all = new Map<string, Candidate>();
  /** Number of candidates in each folder, by its key. */
  readonly counts = new Map<string, number>();
  /** The last member, in the order of `orderOf`, up to which all candidates are here. */
  end = NO_END;
  readonly #isInScope: (path: Path) => boolean;

  constructor({ path: folder }: FolderEntry, level: SyncLevel) {
    const key = keyOf(folder);
    this.#isInScope = level === 'infinite' ? () => true : (path) => keyOf(parentOf(path)) === key;
  }

  add(candidate: Candidate): void {
    if (!this.#isInScope(candidate.path)) return;
    const order = orderOf(candidate.path);
    const before = this.#all.get(order);
    if (!before) {
      const folder = keyOf(parentOf(candidate.path));
      this.counts.set(folder, (this.counts.get(folder) ?? 0) + 1);
    }
    this.#all.set(order, { ...candidate, isLogged: candidate.isLogged || before?.isLogged === true });
  }

  sorted(): readonly (readonly [order: string, candidate: Candidate])[] {
    return [...this.#all].sort(([one], [other]) => (one < other ? -1 : 1));
  }
}

/** The rows of a report of changes, and what the client knows with them. */
class ChangeRows {
  readonly all: SyncRow[] = [];
  /** Folders to be reported with all that they contain afterwards. */
  readonly again: Path[];
  readonly known: Map<string, KnownEntry>;
  readonly #knownKeys = new KeyTree();
  /** In the order of `orderOf`: the last member whose own members this report leaves out. */
  #last: string | undefined;

  constructor(
    known: ReadonlyMap<string, KnownEntry>,
    private readonly unlogged: ReadonlyMap<string, KnownEntry>,
    again: readonly Path[],
  ) {
    this.known = new Map(known);
    for (const key of known.keys()) this.#knownKeys.add(key);
    this.again = [...again];
    const last = again.at(-1);
    if (last !== undefined) this.#last = orderOf(last);
  }

  /** With a folder all that it contains is removed, or reported again. */
  isBelowLast(order: string): boolean {
    return this.#last !== undefined && order.startsWith(`${this.#last}\0`);
  }

  there(entry: Entry): void {
    this.all.push({ entry });
    const key = keyOf(entry.path);
    if (entry.kind === 'file') this.#forget(key);
    const own = this.unlogged.get(key);
    if (own) this.#note(key, { ...own, path: entry.path });
    else this.#drop(key);
  }

  gone(path: Path): void {
    this.all.push({ gone: path });
    this.#forget(keyOf(path));
    this.#last = orderOf(path);
  }

  goneAndAgain(path: Path): void {
    this.gone(path);
    this.again.push(path);
  }

  #forget(key: string): void {
    for (const each of this.#knownKeys.within(key)) this.#drop(each);
  }

  #note(key: string, entry: KnownEntry): void {
    this.known.set(key, entry);
    this.#knownKeys.add(key);
  }

  #drop(key: string): void {
    this.known.delete(key);
    this.#knownKeys.delete(key);
  }
}

async function unloggedIn({ log, folder }: SyncedFolder): Promise<ReadonlyMap<string, KnownEntry>> {
  const revisions = await log.unlogged(folder.path);
  if (revisions.size > UNLOGGED_MAX)
    throw tooMuchToKnow(folder.path, `${revisions.size} files of desktop systems and pending files`);
  const entries = [...revisions].map(([path, rev]) => ({ path, mark: revisionMark(rev) }));
  return new Map(entries.map((entry) => [keyOf(entry.path), entry]));
}
