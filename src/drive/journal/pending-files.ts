import type { PendingWrite } from '../../state/journal.ts';
import { type Instant, LONG_AGO, laterOf } from '../../util/clock.ts';
import { isWithin, keyOf, type Path, parentOf } from '../../util/path.ts';
import type { Fault } from '../errors.ts';
import type { FileEntry } from '../files.ts';
import { pendingEntry } from './overlay-entries.ts';

/** A reason for which a write has not landed yet. */
export interface Problem {
  readonly fault: Fault;
  readonly message: string;
}

/** A pending write and its progress. */
export class PendingFile {
  static #accepted = 0;
  /** Position in the order of acceptance, over all paths. */
  readonly order = PendingFile.#accepted++;
  /** `accepting`: not on disk yet, and invisible. `suspended`: not to be sent for now. */
  state: 'accepting' | 'waiting' | 'sending' | 'suspended' = 'waiting';
  /**
   * Whether it was sent in this run, or possibly in an earlier one, so that the service may have it. A newer write does
   * not supersede it: only this one can be recognised at the service as ours.
   */
  wasSent = false;
  /** Whether it is sent at once, because a request waits for it. */
  isUrgent = false;
  /** Failures of this write alone. */
  failures = 0;
  /** Those among them that make no sense: the write is given up after some. */
  brokenCount = 0;
  /** The service's entry, when the write only has to be removed from the journal. */
  landed: FileEntry | undefined;
  /** Time until which an empty file waits for its body. */
  bodyDueBy: Instant = LONG_AGO;
  /** Time of the next try after a failure. */
  notBefore: Instant = LONG_AGO;
  /** Failures of all writes that may concern this one alone. */
  troubles = 0;
  /** The reason of the last failure; set by `PendingFiles.hinder`. */
  problem: Problem | undefined;

  constructor(
    public write: PendingWrite,
    /** How much more of the quota it uses than the file it replaces, in bytes. */
    public readonly growthBytes: number,
  ) {}

  get due(): Instant {
    return this.isUrgent ? LONG_AGO : laterOf(this.bodyDueBy, this.notBefore);
  }
}

const NONE: readonly FileEntry[] = [];

/**
 * The pending writes of a drive by path. A path may have several. They land in the order of their acceptance, also those
 * that came from another path, so that the newest acknowledged write is what the file has in the end.
 */
export class PendingFiles {
  readonly #places = new Map<string, PendingFile[]>();
  readonly #folders = new Map<string, Set<string>>();
  /** The pending entries of each folder: the same object until one of them changes. */
  readonly #shown = new Map<string, readonly FileEntry[]>();
  readonly #hindered = new Set<PendingFile>();
  #departures = 0;
  files = 0;
  bytes = 0;
  growthBytes = 0;

  /** `announce` is called with the path of each write that is seen differently from then on. */
  constructor(private readonly announce: (path: Path) => void = () => {}) {}

  /** Grows when a write leaves: a listing of the tree below that was read before may not have it yet. */
  get departures(): number {
    return this.#departures;
  }

  add(file: PendingFile): void {
    const key = keyOf(file.write.path);
    const folder = keyOf(parentOf(file.write.path));
    const queue = this.#places.get(key) ?? [];
    queue.splice(queue.findLastIndex(({ order }) => order < file.order) + 1, 0, file);
    this.#places.set(key, queue);
    this.#folders.set(folder, (this.#folders.get(folder) ?? new Set()).add(key));
    this.#shown.delete(folder);
    this.files++;
    this.bytes += file.write.sizeBytes;
    this.growthBytes += file.growthBytes;
    this.announce(file.write.path);
  }

  delete(file: PendingFile): void {
    const key = keyOf(file.write.path);
    const queue = this.#places.get(key);
    const index = queue?.indexOf(file) ?? -1;
    if (!queue || index < 0) return;
    queue.splice(index, 1);
    this.#hindered.delete(file);
    const folder = keyOf(parentOf(file.write.path));
    this.#shown.delete(folder);
    this.announce(file.write.path);
    this.#departures++;
    this.files--;
    this.bytes -= file.write.sizeBytes;
    this.growthBytes -= file.growthBytes;
    if (queue.length > 0) return;
    this.#places.delete(key);
    const siblings = this.#folders.get(folder);
    siblings?.delete(key);
    if (siblings?.size === 0) this.#folders.delete(folder);
  }

  /** Moves all writes at `from` to `to`, among those that are there already. */
  move(from: Path, to: Path): readonly PendingFile[] {
    const files = [...this.at(from)];
    for (const file of files) {
      const { problem } = file;
      this.delete(file);
      file.write = { ...file.write, path: to };
      this.add(file);
      if (problem) this.hinder(file, problem);
    }
    return files;
  }

  /** Updates the entry of `file`. Must be called when the entry as clients see it has changed. */
  changed(file: PendingFile): void {
    this.#shown.delete(keyOf(parentOf(file.write.path)));
    this.announce(file.write.path);
  }

  /** Returns the writes at `path`, in the order in which they land. */
  at(path: Path): readonly PendingFile[] {
    return this.#places.get(keyOf(path)) ?? [];
  }

  first(path: Path): PendingFile | undefined {
    return this.at(path)[0];
  }

  /** Returns whether `file` is the first write of its path, and no other one of the path is being sent. */
  isNext(file: PendingFile): boolean {
    const [first, ...later] = this.at(file.write.path);
    return first === file && later.every(({ state }) => state !== 'sending');
  }

  /** Returns the write that clients see. */
  newest(path: Path): PendingFile | undefined {
    return this.at(path).findLast(({ state }) => state !== 'accepting');
  }

  /** Returns the entries directly in `folder`, as clients see them. */
  in(folder: Path): readonly FileEntry[] {
    const key = keyOf(folder);
    const known = this.#shown.get(key);
    if (known) return known;
    const keys = this.#folders.get(key);
    if (!keys) return NONE;
    const shown = [...keys].flatMap((each) => {
      const newest = this.newest(each as Path);
      return newest ? pendingEntry(newest.write) : [];
    });
    this.#shown.set(key, shown);
    return shown;
  }

  /** Returns the writes at `path` and below. */
  within(path: Path): PendingFile[] {
    const found: PendingFile[] = [];
    for (const [key, queue] of this.#places)
      if (isWithin(key as Path, path)) for (const file of queue) found.push(file);
    return found;
  }

  /** Returns the revisions of the files below `folder`, as clients see them, by path. */
  revisionsBelow(folder: Path): ReadonlyMap<Path, string> {
    const revisions = new Map<Path, string>();
    for (const { write } of this.within(folder)) {
      const newest = this.newest(write.path);
      if (newest) revisions.set(newest.write.path, pendingEntry(newest.write).rev);
    }
    return revisions;
  }

  /** The reason why the first failed write has not landed. */
  get problem(): Problem | undefined {
    const [first] = this.#hindered;
    return first?.problem;
  }

  /** Records that a try of `file` has failed. */
  hinder(file: PendingFile, problem: Problem): void {
    file.problem = problem;
    this.#hindered.add(file);
    this.announce(file.write.path);
  }

  /** Forgets the problems of the writes for which `isFree` is true. */
  free(isFree: (file: PendingFile) => boolean): void {
    for (const file of [...this.#hindered].filter(isFree)) {
      file.problem = undefined;
      this.#hindered.delete(file);
      this.announce(file.write.path);
    }
  }

  *all(): Iterable<PendingFile> {
    for (const queue of this.#places.values()) yield* queue;
  }
}
