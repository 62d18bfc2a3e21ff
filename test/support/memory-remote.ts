import { CallAvailability } from '../../src/api/caller.ts';
import { ApiError, type ApiFailure } from '../../src/api/errors.ts';
import type {
  Change,
  Entry,
  EntryLocation,
  FeedChange,
  FileEntry,
  FolderEntry,
  ListOptions,
  Page,
  Quota,
  Remote,
  RemoteWriteOptions,
  RevisionsOptions,
} from '../../src/api/remote.ts';
import type { CommitOptions } from '../../src/api/write/upload-calls.ts';
import { keyOf, type Path, parentOf, pathOf, ROOT } from '../../src/util/path.ts';
import { readOf } from './byte-source.ts';
import { CallScript, type Gate, unlessAborted } from './call-script.ts';
import { collected } from './collected-body.ts';
import { ManualClock } from './manual-clock.ts';
import { MemoryLinkCalls } from './memory-links.ts';
import { searchPage } from './memory-search.ts';
import { MemoryStore, mustBeTaken } from './memory-store.ts';

/** A method of `Remote` that a test can make fail or wait. */
type Call = keyof Remote;

/**
 * A `Remote` in memory, with cursors and a change feed like the real service's. Calls are recorded; a test can
 * make the next call of a method fail before or after it took effect, or hold it at its beginning or its end.
 */
export class MemoryRemote implements Remote {
  pageEntries = 1000;
  permanentAllowed = true;
  /** The account's quota, in bytes; `undefined` without a limit. */
  allocatedBytes: number | undefined = 1_000_000_000;
  /** Entries that were removed and can be restored. */
  readonly trash: Entry[] = [];
  /** Ids of items that were moved out of the drive's root. */
  readonly #outside = new Set<string>();
  /** The clock of the service and of its drive. */
  readonly clock = new ManualClock();
  readonly availability = new CallAvailability(this.clock);
  readonly #script = new CallScript<Call>((call, work) => this.#noted(call, work));
  readonly #store = new MemoryStore(() => {
    if (!this.#isFeedHeld) this.#wakeAll();
  });
  readonly #lastWrites = new Map<string, Promise<void>>();
  readonly #links = new MemoryLinkCalls(this.#script, this.#store);
  #wake: (() => void)[] = [];
  #isFeedHeld = false;

  // Controls of the test.

  get calls() {
    return this.#script.calls;
  }

  /** Makes the next `call` fail, with `late` after it took effect, like a lost answer. */
  failNext(call: Call, failure: ApiFailure | Error, { late = false } = {}): void {
    this.#script.failNext(call, failure, late);
  }

  /** Makes every call and every waiting long poll fail until `back`. */
  goAway(failure: ApiFailure): void {
    this.#script.outage = failure;
    this.breakFeed();
  }

  back(): void {
    this.#script.outage = undefined;
    this.isReachable = true;
  }

  /** Holds the next `call` before it does anything (`begin`), or its answer (`end`), until released. */
  holdNext(call: Call, at: 'begin' | 'end'): Gate {
    return this.#script.holdNext(call, at);
  }

  /** Cancels the holds of calls that have not been made yet. */
  forgetGates(): void {
    this.#script.forgetGates();
  }

  /** Releases the held calls, and cancels the holds of calls that have not been made yet. */
  openGates(): void {
    this.#script.openGates();
  }

  /** Holds the change feed back until `releaseFeed`. */
  holdFeed(): void {
    this.#isFeedHeld = true;
  }

  releaseFeed(): void {
    this.#isFeedHeld = false;
    this.#wakeAll();
  }

  /** Whether long polls succeed. */
  isReachable = true;

  breakFeed(): void {
    this.isReachable = false;
    this.#wakeAll();
  }

  count(...calls: Call[]): number {
    return this.calls.filter(({ call }) => calls.length === 0 || calls.includes(call)).length;
  }

  /** Number of calls, without those of the change feed. */
  get questions(): number {
    return this.calls.filter(({ call }) => !['latestCursor', 'awaitChange', 'changesSince'].includes(call))
      .length;
  }

  /** Writes a file as another client. */
  putFile(path: Path, text = '', modifiedMs?: number): FileEntry {
    const options: CommitOptions = { mode: { if: 'any' }, ...(modifiedMs !== undefined && { modifiedMs }) };
    return this.#store.commit(path, Buffer.from(text), options);
  }

  /** Makes a folder as another client. */
  putFolder(path: Path): FolderEntry {
    return this.#store.makeFolder(path);
  }

  /** Deletes an item as another client. */
  delete(path: Path): void {
    this.#store.remove(path);
  }

  /** Moves an item as another client. */
  rename(from: Path, to: Path): void {
    this.#store.relocate(from, to, true);
  }

  /** Moves an item out of the drive's root as another client. */
  moveOut(path: Path): void {
    for (const { id } of [this.#store.existing(path), ...this.#store.within(path)]) this.#outside.add(id);
    this.#store.remove(path);
  }

  entryAt(path: Path): Entry | undefined {
    return this.#store.at(path);
  }

  text(path: Path): string | undefined {
    const content = this.#store.contentAt(path);
    return content && Buffer.from(content).toString();
  }

  /** All paths, sorted. */
  get paths(): string[] {
    return this.#store.entries.map(({ path }) => path as string).sort();
  }

  // Methods of `Remote`.

  stat(path: Path, signal?: AbortSignal) {
    return this.#script.run('stat', path, signal, () => this.#store.at(path));
  }

  locate(id: string, signal?: AbortSignal) {
    return this.#script.run('locate', id, signal, (): EntryLocation | undefined => {
      if (this.#outside.has(id)) return 'outside';
      return this.#store.entries.find((entry) => entry.id === id)?.path;
    });
  }

  async *list(
    folder: Path,
    { recursive, withDeleted = false }: ListOptions,
    signal?: AbortSignal,
  ): AsyncIterable<Page> {
    const found = await this.#script.run('list', folder, signal, (): Change[] => {
      const at = this.#store.at(folder);
      if (folder !== ROOT && !at) throw new ApiError('not-found', `${folder} is not there`);
      if (at?.kind === 'file') throw new ApiError('not-folder', `${folder} is a file`);
      const isListed = (path: Path) => recursive || keyOf(parentOf(path)) === keyOf(folder);
      const entries = this.#store.within(folder).filter(({ path }) => isListed(path));
      const deleted = withDeleted ? this.#store.past.deletedWithin(folder).filter(isListed) : [];
      return [
        ...entries.map((entry) => ({ kind: 'put', entry }) as const),
        ...deleted.map((path) => ({ kind: 'deleted', path }) as const),
      ];
    });
    let start = 0;
    do {
      const changes = found.slice(start, start + this.pageEntries);
      start += this.pageEntries;
      yield { changes, cursor: `${this.#store.changes.length}`, hasMore: start < found.length };
    } while (start < found.length);
  }

  latestCursor(signal?: AbortSignal) {
    return this.#script.run('latestCursor', ROOT, signal, () => {
      this.#mustBeReachable();
      return `${this.#store.changes.length}`;
    });
  }

  async awaitChange(cursor: string, _timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    return this.#script.run('awaitChange', cursor, signal, async () => {
      while (this.#isFeedHeld || Number(cursor) >= this.#store.changes.length) {
        this.#mustBeReachable();
        await unlessAborted(signal, new Promise<void>((resolve) => this.#wake.push(resolve)));
      }
      return true;
    });
  }

  changesSince(cursor: string, signal?: AbortSignal): Promise<Page<FeedChange>> {
    return this.#script.run('changesSince', cursor, signal, () => {
      this.#mustBeReachable();
      const start = Number(cursor);
      if (!Number.isInteger(start)) throw new ApiError('reset', 'no such cursor');
      const end = this.#isFeedHeld ? start : Math.min(this.#store.changes.length, start + this.pageEntries);
      const hasMore = !this.#isFeedHeld && end < this.#store.changes.length;
      return { changes: this.#store.changes.slice(start, end), cursor: `${end}`, hasMore };
    });
  }

  download(file: FileEntry, range: { start: number; end: number } | undefined, signal?: AbortSignal) {
    return this.#script.run('download', file.path, signal, () => {
      const content = this.#store.contentOf(file.rev);
      if (!content) throw new ApiError('not-found', 'no such revision');
      const bytes = range ? content.subarray(range.start, range.end) : content;
      return { file, read: readOf(once(bytes)) };
    });
  }

  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: RemoteWriteOptions,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<FileEntry> {
    const { mode, modifiedMs, sizeBytes, aroundCommit = (commit) => commit() } = options;
    const content = await collected(body, sizeBytes, signal);
    return this.#inOrder(path, signal, () => {
      signal.throwIfAborted();
      const commitOptions = { mode, ...(modifiedMs !== undefined && { modifiedMs }) };
      return aroundCommit(() =>
        this.#script.run('write', path, signal, () => this.#store.commit(path, content, commitOptions)),
      );
    });
  }

  /** Forgets running writes, as if the client was killed: its next writes do not wait for them. */
  forgetClient(): void {
    this.#lastWrites.clear();
  }

  /** Runs writes to one path one after the other. */
  async #inOrder<T>(path: Path, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const key = keyOf(path);
    const before = this.#lastWrites.get(key);
    let end = () => {};
    this.#lastWrites.set(
      key,
      new Promise((resolve) => {
        end = resolve;
      }),
    );
    try {
      await Promise.race([before, aborted(signal)]);
      return await work();
    } finally {
      end();
    }
  }

  createFolder(path: Path, signal?: AbortSignal) {
    return this.#script.run('createFolder', path, signal, () => this.#store.createFolder(path));
  }

  remove(
    path: Path,
    { permanent, id, rev }: { permanent: boolean; id?: string; rev?: string },
    signal?: AbortSignal,
  ) {
    return this.#script.run('remove', path, signal, () => {
      if (permanent && !this.permanentAllowed) throw new ApiError('not-allowed', 'not for this account');
      mustBeTaken(path);
      const entry = this.#store.existing(path);
      if (id !== undefined && entry.id !== id) throw new ApiError('not-found', 'another one is there');
      if (rev !== undefined && !(entry.kind === 'file' && entry.rev === rev))
        throw new ApiError('conflict-file', 'it has changed');
      if (permanent) return this.#store.removeForGood(path);
      this.trash.push(entry);
      this.#store.remove(path);
    });
  }

  readonly copy = (from: Path, to: Path, signal?: AbortSignal) => {
    return this.#script.run('copy', `${from} → ${to}`, signal, () => this.#store.relocate(from, to, false));
  };

  readonly move = (from: Path, to: Path, signal?: AbortSignal) => {
    return this.#script.run('move', `${from} → ${to}`, signal, () => this.#store.relocate(from, to, true));
  };

  revisions(path: Path, options: RevisionsOptions, signal?: AbortSignal) {
    return this.#script.run('revisions', path, signal, () => this.#store.revisions(path, options));
  }

  restore(path: Path, rev: string, signal?: AbortSignal) {
    return this.#script.run('restore', path, signal, () => this.#store.restore(path, rev));
  }

  quota(signal?: AbortSignal) {
    return this.#script.run('quota', ROOT, signal, (): Quota | undefined => {
      const { allocatedBytes } = this;
      const { usedBytes } = this.#store;
      return allocatedBytes === undefined ? undefined : { usedBytes, allocatedBytes };
    });
  }

  search(query: string, cursor: string | undefined, signal?: AbortSignal) {
    const page = () => searchPage(this.#store.entries, query, cursor, this.pageEntries);
    return this.#script.run('search', query, signal, page);
  }

  thumbnail(file: FileEntry, signal?: AbortSignal) {
    return this.#script.run('thumbnail', file.path, signal, () => Buffer.from(`image of ${file.rev}`));
  }

  readonly sharedLink: Remote['sharedLink'] = (...how) => this.#links.sharedLink(...how);
  readonly sharedLinks: Remote['sharedLinks'] = (...how) => this.#links.sharedLinks(...how);
  readonly createSharedLink: Remote['createSharedLink'] = (...how) => this.#links.createSharedLink(...how);
  readonly changeSharedLink: Remote['changeSharedLink'] = (...how) => this.#links.changeSharedLink(...how);
  readonly revokeSharedLink: Remote['revokeSharedLink'] = (...how) => this.#links.revokeSharedLink(...how);

  /** As in the real client, a long poll does not affect the availability. */
  async #noted<T>(call: Call, work: () => Promise<T>): Promise<T> {
    if (call === 'awaitChange') return work();
    try {
      const result = await work();
      this.availability.succeeded();
      return result;
    } catch (error) {
      this.availability.failed(error);
      throw error;
    }
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  #mustBeReachable(): void {
    if (!this.isReachable) throw new ApiError('offline', 'the feed is broken');
  }
}

/** Returns the path of a text like `/a/b`. */
export function at(text: string): Path {
  return text === '/' ? ROOT : pathOf(text.slice(1).split('/'));
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}

/** Rejects with the signal's reason when it fires. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
