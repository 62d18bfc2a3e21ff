import { type Clock, elapsedMs, type Instant, LONG_AGO } from '../../util/clock.ts';
import { foldName, isWithin, keyOf, nameOf, namesOf, type Path, parentOf } from '../../util/path.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import type { Changes } from '../changes.ts';
import { FileError } from '../errors.ts';
import type { Entry, Files, Listing } from '../files.ts';

/** How long a failed measurement is not repeated, in ms: writes must not wait for an unavailable service one by one. */
const FAILED_MS = 30_000;

/** Shortest time between two measurements from the beginning, in ms. */
const WHOLE_MS = 10_000;

/** Bytes that a running change may add to the folder. */
export interface Growth {
  readonly path: Path;
  /** The entry at `path` before the change. */
  readonly before: Entry | undefined;
  /** Size of the file as it will be, if it is a file. */
  sizeBytes: number;
  /** By how much the folder grows. */
  addedBytes: number;
}

/** A folder at or below the measured one. */
interface Node {
  /** Size of the files directly in it. */
  bytes: number;
  readonly folders: Map<string, Node>;
}

/**
 * The size of all files in a folder of a drive, and below it. Measured once; after that only folders in which something has
 * changed are listed again. The listings come from the cache of the drive where it has them.
 */
export class FolderSize {
  /** `undefined`: nothing has been listed yet. */
  #top: Node | undefined;
  /** Folders to list again, and with `tree` everything below them. */
  readonly #changed = new Map<Path, 'folder' | 'tree'>();
  #bytes = 0;
  /** Whether `#bytes` is the size of everything, as far as changes are known. */
  #isComplete = false;
  /** The last complete measurement. */
  #lastBytes: number | undefined;
  #wholeSince: Instant = LONG_AGO;
  #failure: { readonly error: FileError; readonly at: Instant } | undefined;
  readonly #growing = new Set<Growth>();
  readonly #flights = new SingleFlight<'measure', number>();

  constructor(
    private readonly drive: { readonly files: Files; readonly changes: Changes },
    readonly folder: Path,
    private readonly clock: Clock,
  ) {
    drive.changes.follow((change) => {
      if (change.kind === 'entry') this.#note(change.path, change.isTree);
    });
  }

  /** The size that was measured last; `undefined` before the first time. */
  get lastBytes(): number | undefined {
    return this.#lastBytes;
  }

  /** Bytes that running changes may add. */
  get growingBytes(): number {
    let bytes = 0;
    for (const { addedBytes } of this.#growing) bytes += addedBytes;
    return bytes;
  }

  /** Counts `growth` while `work` runs. */
  async during<T>(growth: Growth, work: () => Promise<T>): Promise<T> {
    this.#growing.add(growth);
    try {
      return await work();
    } finally {
      this.#growing.delete(growth);
    }
  }

  /** Returns the size with all changes that are known; while the service is unavailable, the last one, if there is one. */
  async current(signal?: AbortSignal): Promise<number | undefined> {
    if (this.#isComplete) return this.#bytes;
    try {
      return await this.#measured(signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof FileError)) throw error;
      return this.#lastBytes;
    }
  }

  /** Like `current`, but lists everything again, at most every ten seconds. Throws why it cannot. */
  currentAnew(signal?: AbortSignal): Promise<number> {
    if (elapsedMs(this.clock, this.#wholeSince) >= WHOLE_MS) this.#forget();
    return this.#measured(signal);
  }

  async #measured(signal: AbortSignal | undefined): Promise<number> {
    if (this.#failure && elapsedMs(this.clock, this.#failure.at) < FAILED_MS) throw this.#failure.error;
    try {
      return await this.#flights.run('measure', (stop) => this.#measure(stop), signal);
    } catch (error) {
      if (error instanceof FileError) this.#failure = { error, at: this.clock.instant() };
      throw error;
    }
  }

  #note(path: Path, isTree: boolean): void {
    if (isWithin(this.folder, path)) this.#forget();
    if (!this.#top || !isWithin(path, this.folder)) return;
    const folder = parentOf(path);
    this.#isComplete = false;
    if (!this.#changed.has(folder)) this.#changed.set(folder, 'folder');
    if (isTree) this.#drop(this.#nodeAt(folder), foldName(nameOf(path)));
  }

  #forget(): void {
    this.#top = undefined;
    this.#isComplete = false;
    this.#changed.clear();
    this.#bytes = 0;
  }

  async #measure(signal: AbortSignal): Promise<number> {
    for (;;) {
      if (!this.#top) {
        this.#top = { bytes: 0, folders: new Map() };
        this.#changed.set(this.folder, 'tree');
        this.#wholeSince = this.clock.instant();
      }
      const [next] = this.#changed;
      if (!next) break;
      await this.#list(next, signal);
    }
    this.#isComplete = true;
    this.#lastBytes = this.#bytes;
    return this.#bytes;
  }

  async #list([folder, what]: readonly [Path, 'folder' | 'tree'], signal: AbortSignal): Promise<void> {
    // A change during the listing sets it again.
    this.#changed.delete(folder);
    if (!this.#nodeAt(folder)) return;
    try {
      if (what === 'tree')
        for await (const listing of this.drive.files.walk(folder, signal)) this.#take(listing);
      else
        for (const path of this.#take(await this.drive.files.list(folder, signal)))
          this.#changed.set(path, 'tree');
    } catch (error) {
      if (!(error instanceof FileError && (error.fault === 'not-found' || error.fault === 'not-a-folder'))) {
        this.#changed.set(folder, what);
        throw error;
      }
      const node = this.#nodeAt(folder);
      if (node) this.#replace(node, 0, new Set());
    }
  }

  /** Takes over the sizes in a listing. Returns the folders in it that were not known. */
  #take({ folder: { path }, children }: Listing): readonly Path[] {
    const node = this.#nodeAt(path);
    // Its folder has disappeared meanwhile; the listing of the one above tells.
    if (!node) return [];
    const found: Path[] = [];
    const names = new Set<string>();
    let bytes = 0;
    for (const child of children) {
      if (child.kind === 'file') bytes += child.sizeBytes;
      else {
        const name = foldName(child.name);
        names.add(name);
        if (node.folders.has(name)) continue;
        node.folders.set(name, { bytes: 0, folders: new Map() });
        found.push(child.path);
      }
    }
    this.#replace(node, bytes, names);
    this.#land(path, children);
    return found;
  }

  #replace(node: Node, bytes: number, names: ReadonlySet<string>): void {
    this.#bytes += bytes - node.bytes;
    node.bytes = bytes;
    for (const name of node.folders.keys()) if (!names.has(name)) this.#drop(node, name);
  }

  #drop(above: Node | undefined, name: string): void {
    const node = above?.folders.get(name);
    if (!node) return;
    above?.folders.delete(name);
    this.#bytes -= sizeOf(node);
  }

  /** A change that is in the listing already must not be counted twice while it ends. */
  #land(folder: Path, children: readonly Entry[]): void {
    for (const growth of this.#growing) {
      if (keyOf(parentOf(growth.path)) !== keyOf(folder)) continue;
      const child = children.find(({ path }) => keyOf(path) === keyOf(growth.path));
      if (child && isLanded(growth, child)) growth.addedBytes = 0;
    }
  }

  #nodeAt(path: Path): Node | undefined {
    let node = this.#top;
    for (const name of namesOf(path).slice(namesOf(this.folder).length))
      node = node?.folders.get(foldName(name));
    return node;
  }
}

function isLanded({ before, sizeBytes }: Growth, child: Entry): boolean {
  if (child.kind === 'folder') return child.id !== before?.id;
  return child.sizeBytes === sizeBytes && !(before?.kind === 'file' && before.rev === child.rev);
}

function sizeOf({ bytes, folders }: Node): number {
  let sum = bytes;
  for (const folder of folders.values()) sum += sizeOf(folder);
  return sum;
}
