import { FileError } from '../../drive/errors.ts';
import type { ChangeLog, Entry, Files, FolderEntry } from '../../drive/files.ts';
import { foldName, keyOf, nameOf, type Path, parentOf } from '../../util/path.ts';
import type { SyncLevel } from './sync-token.ts';

/** A folder to be followed. */
export interface SyncedFolder {
  readonly files: Files;
  readonly log: ChangeLog;
  readonly folder: FolderEntry;
  readonly signal: AbortSignal;
}

/** Maximum number of listings that are kept while a report looks members up. */
const LISTINGS_MAX = 200;

/** Returns a text by which paths are sorted: a folder before all that it contains, and that before the next member. */
export function orderOf(path: Path): string {
  return keyOf(path).replaceAll('/', '\0');
}

/** Yields the members of a folder after `after`, in the order of `orderOf`. */
export async function* membersAfter(
  synced: SyncedFolder,
  top: FolderEntry,
  level: SyncLevel,
  after = '',
): AsyncGenerator<Entry> {
  const pending: Entry[] = await sortedMembers(synced, top);
  for (let next = pending.pop(); next; next = pending.pop()) {
    const order = orderOf(next.path);
    if (order > after) yield next;
    const mayContain = order > after || order === after || after.startsWith(`${order}\0`);
    if (next.kind === 'file' || level === '1' || !mayContain) continue;
    for (const member of await sortedMembers(synced, next)) pending.push(member);
  }
}

/** Returns the members of a folder, the last one first. None if it has disappeared, which the next report tells. */
async function sortedMembers({ files, signal }: SyncedFolder, { path }: FolderEntry): Promise<Entry[]> {
  const listing = await unlessGone(() => files.list(path, signal));
  const members = (listing?.children ?? []).map((entry) => ({ entry, name: foldName(entry.name) }));
  return members.sort((one, other) => (one.name < other.name ? 1 : -1)).map(({ entry }) => entry);
}

/** The present state of single members. */
export class Members {
  readonly #listings = new Map<string, ReadonlyMap<string, Entry>>();
  readonly #reachable = new Map<string, boolean>();

  /** `counts`: how many members of each folder will be asked for, by its key. */
  constructor(
    private readonly synced: SyncedFolder,
    private readonly counts: ReadonlyMap<string, number>,
  ) {}

  /** Looks at the folders above too: local files outlive their folder, and a pending file can hide a new one. */
  async at(path: Path): Promise<Entry | undefined> {
    const { files, signal } = this.synced;
    const folder = parentOf(path);
    if (!(await this.#isReachable(folder))) return undefined;
    if ((this.counts.get(keyOf(folder)) ?? 0) < 2) return files.known(path) ?? files.stat(path, signal);
    return (await this.#listing(folder)).get(foldName(nameOf(path)));
  }

  async #isReachable(folder: Path): Promise<boolean> {
    const key = keyOf(folder);
    if (key === keyOf(this.synced.folder.path)) return true;
    const known = this.#reachable.get(key);
    if (known !== undefined) return known;
    const { files, signal } = this.synced;
    const entry = files.known(folder) ?? (await files.stat(folder, signal));
    const isReachable = entry?.kind === 'folder' && (await this.#isReachable(parentOf(folder)));
    this.#reachable.set(key, isReachable);
    return isReachable;
  }

  async #listing(folder: Path): Promise<ReadonlyMap<string, Entry>> {
    const key = keyOf(folder);
    const known = this.#listings.get(key);
    if (known) return known;
    const { files, signal } = this.synced;
    const listing = await unlessGone(() => files.list(folder, signal));
    const byName = new Map(listing?.children.map((entry) => [foldName(entry.name), entry]));
    if (this.#listings.size >= LISTINGS_MAX) this.#listings.clear();
    this.#listings.set(key, byName);
    return byName;
  }
}

async function unlessGone<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof FileError && (error.fault === 'not-found' || error.fault === 'not-a-folder'))
      return undefined;
    throw error;
  }
}
