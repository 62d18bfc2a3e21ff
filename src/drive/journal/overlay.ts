import { BodyGone, type Journal } from '../../state/journal.ts';
import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError, replaced } from '../errors.ts';
import type { Entry, FileEntry, Files, Listing } from '../files.ts';
import { verifiedBody } from './delivery.ts';
import { type OverlayEntries, pendingEntry, tagFor, tagOf } from './overlay-entries.ts';
import type { PendingFiles } from './pending-files.ts';

/** Number of reads of a folder in which writes land all the time. */
const ATTEMPTS_MAX = 8;

/** The drive as clients see it: the tree below with the pending writes over it. */
export class Overlay {
  constructor(
    private readonly base: Files,
    private readonly journal: Journal,
    private readonly pending: PendingFiles,
    private readonly shown: OverlayEntries,
  ) {}

  /**
   * As `Files.statForWrite`, which also answers from a last known listing while the service is away: programs check
   * that a name is free before they save, and a journaled drive lets them save then.
   */
  stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    return this.statForWrite(path, { isPinned: false }, signal);
  }

  known(path: Path): Entry | undefined {
    const newest = this.pending.newest(path);
    if (newest) return pendingEntry(newest.write);
    const entry = this.base.known(path);
    return entry && this.shown.of(entry);
  }

  async statForWrite(
    path: Path,
    options: { readonly isPinned: boolean },
    signal?: AbortSignal,
  ): Promise<Entry | undefined> {
    const newest = this.pending.newest(path);
    if (newest) return pendingEntry(newest.write);
    const entry = await this.base.statForWrite(path, options, signal);
    return entry && this.shown.of(entry);
  }

  async list(folder: Path, signal?: AbortSignal): Promise<Listing> {
    if (this.pending.newest(folder)) throw new FileError('not-a-folder', `${folder} is not a folder`);
    for (let attempt = 1; ; attempt++) {
      const before = this.pending.departures;
      const listing = await this.base.list(folder, signal, this.#isCovered);
      // A write that has landed meanwhile may be in neither of the two.
      if (this.pending.departures === before || attempt === ATTEMPTS_MAX) return this.#over(listing);
    }
  }

  async *walk(folder: Path, signal?: AbortSignal): AsyncIterable<Listing> {
    let before = this.pending.departures;
    for await (const listing of this.base.walk(folder, signal, this.#isCovered)) {
      const isSure = this.pending.departures === before;
      const { path } = listing.folder;
      if (this.#isWithinFile(path, folder)) continue;
      const again = isSure
        ? listing
        : await this.base.list(path, signal, this.#isCovered).catch(() => listing);
      yield this.#over(again);
      before = this.pending.departures;
    }
  }

  inMemory(file: FileEntry): Uint8Array | undefined {
    const original = this.pending.newest(file.path) ? undefined : this.shown.original(file);
    return original && this.base.inMemory(original);
  }

  async *read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const pending = this.pending.at(file.path).find(({ write }) => tagFor(write.contentHash) === file.rev);
    if (pending) {
      const bytes = range
        ? this.journal.read(pending.write.id, range)
        : verifiedBody(this.journal, pending.write);
      let hasBegun = false;
      try {
        for await (const piece of bytes) {
          signal.throwIfAborted();
          hasBegun = true;
          yield piece;
        }
        return;
      } catch (error) {
        // It has just landed, so the service has it.
        if (!isGone(error) || hasBegun) throw error;
      }
    }
    yield* this.base.read(await this.#original(file, signal), range, signal);
  }

  async #original(file: FileEntry, signal: AbortSignal): Promise<FileEntry> {
    const original = this.shown.original(file);
    if (original) return original;
    const found = await this.base.stat(file.path, signal);
    if (found?.kind === 'file' && tagOf(found) === file.rev) return found;
    throw replaced(file.path);
  }

  readonly #isCovered = (path: Path): boolean => this.pending.newest(path) !== undefined;

  /** Whether a pending file hides `path`, at `top` or below: others have made a folder where it will land. */
  #isWithinFile(path: Path, top: Path): boolean {
    if (this.pending.files === 0) return false;
    const end = keyOf(top);
    for (let above = path; above !== ROOT; above = parentOf(above)) {
      if (this.pending.newest(above)) return true;
      if (keyOf(above) === end) return false;
    }
    return false;
  }

  #over(listing: Listing): Listing {
    return this.shown.listing(listing, this.pending.in(listing.folder.path));
  }
}

function isGone(error: unknown): boolean {
  return error instanceof BodyGone || (error instanceof FileError && error.details.cause instanceof BodyGone);
}
