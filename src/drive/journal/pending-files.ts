import type { PendingWrite } from '../../state/journal.ts';
import { type Instant, LONG_AGO, laterOf } from '../../util/clock.ts';
import { isWithin, keyOf, type Path, parentOf } from '../../util/path.ts';
import type { Fault } from '../errors.ts';
import type { FileEntry } from '../files.ts';
import { pendingEntry } from './overlay-entries.ts';

/** What hinders a write. */
export interface Problem {
  readonly fault: Fault;
  readonly message: string;
}

/** A pending write on its way. */
export class PendingFile {
  /** `accepting`: not on disk yet, and not to be seen. `kept`: not to be sent for now. */
  state: 'accepting' | 'waiting' | 'sending' | 'kept' = 'waiting';
  /**
   * The service may have it: it was sent in this run, or perhaps in an earlier one. No other write takes its place, for
   * only it can be recognised at the service as ours.
   */
  wasSent = false;
  /** Sent at once, whatever it would have waited for: somebody waits for it. */
  isUrgent = false;
  failures = 0;
  /** What the service made of it, when only crossing it out in the journal is left to do. */
  landed: FileEntry | undefined;
  /** Until then an empty file waits for its body. */
  heldUntil: Instant = LONG_AGO;
  /** After a failure, the next try is made then. */
  notBefore: Instant = LONG_AGO;
  /** Tries that met trouble which may be of this write alone. */
  troubles = 0;
  /** Why the last try failed; set by `PendingFiles.hinder`. */
  problem: Problem | undefined;

  constructor(
    public write: PendingWrite,
    /** By how much it makes the account fuller than it is, in bytes. */
    public readonly growthBytes: number,
  ) {}

  get due(): Instant {
    return this.isUrgent ? LONG_AGO : laterOf(this.heldUntil, this.notBefore);
  }
}

const NONE: readonly FileEntry[] = [];

/** The pending writes of a drive by place. Of one place there may be several, which land in their order. */
export class PendingFiles {
  readonly #places = new Map<string, PendingFile[]>();
  readonly #folders = new Map<string, Set<string>>();
  /** What each folder shows of them: the same object until one of them changes. */
  readonly #shown = new Map<string, readonly FileEntry[]>();
  readonly #hindered = new Set<PendingFile>();
  #departures = 0;
  files = 0;
  bytes = 0;
  growthBytes = 0;

  /** Grows whenever one goes: what was read below before may not know yet what became of it. */
  get departures(): number {
    return this.#departures;
  }

  add(file: PendingFile): void {
    const key = keyOf(file.write.path);
    const folder = keyOf(parentOf(file.write.path));
    const queue = this.#places.get(key) ?? [];
    queue.push(file);
    this.#places.set(key, queue);
    this.#folders.set(folder, (this.#folders.get(folder) ?? new Set()).add(key));
    this.#shown.delete(folder);
    this.files++;
    this.bytes += file.write.sizeBytes;
    this.growthBytes += file.growthBytes;
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

  /** Takes all at `from` to another place, after those that are there already. */
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

  /** To be called after something of `file` has changed that is shown. */
  changed(file: PendingFile): void {
    this.#shown.delete(keyOf(parentOf(file.write.path)));
  }

  /** In the order in which they are to land. */
  at(path: Path): readonly PendingFile[] {
    return this.#places.get(keyOf(path)) ?? [];
  }

  first(path: Path): PendingFile | undefined {
    return this.at(path)[0];
  }

  /** The one that is to be seen. */
  newest(path: Path): PendingFile | undefined {
    return this.at(path).findLast(({ state }) => state !== 'accepting');
  }

  /** Those directly in `folder`, as they are shown. */
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

  /** All at `path` and below. */
  within(path: Path): PendingFile[] {
    const found: PendingFile[] = [];
    for (const [key, queue] of this.#places)
      if (isWithin(key as Path, path)) for (const file of queue) found.push(file);
    return found;
  }

  /** What hinders the first of those that are hindered. */
  get problem(): Problem | undefined {
    const [first] = this.#hindered;
    return first?.problem;
  }

  /** To be called when a try of `file` has failed. */
  hinder(file: PendingFile, problem: Problem): void {
    file.problem = problem;
    this.#hindered.add(file);
  }

  /** Nothing hinders those any more that `isFree` picks. */
  free(isFree: (file: PendingFile) => boolean): void {
    for (const file of [...this.#hindered].filter(isFree)) {
      file.problem = undefined;
      this.#hindered.delete(file);
    }
  }

  *all(): Iterable<PendingFile> {
    for (const queue of this.#places.values()) yield* queue;
  }
}
