import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import { keyOf, type Path } from '../../util/path.ts';
import { type ApiError, isApiFailure } from '../errors.ts';
import type { AroundCommit, FileEntry } from '../remote.ts';
import { TurnTaken } from '../turns.ts';
import type { CommitOptions, SessionCommit, UploadCalls, UploadSession } from './upload-calls.ts';

/** Maximum size of a content that is staged with others, in bytes. Longer ones are staged alone and share the commit. */
const SHORT_BYTES_MAX = 256 * 1024;

/** Minimum number of files in a group. Below this, sequential `upload` calls are as fast. */
const GROUP_FILES_MIN = 3;

/** Maximum number of files in a group, and of their bytes. More would be late on a slow line. */
const GROUP_FILES_MAX = 50;
const GROUP_BYTES_MAX = 2 * 1024 * 1024;

/** Maximum number of groups that are staged in parallel. */
const GROUPS_MAX = 3;

/** Maximum number of entries in one `finish_batch_v2`. */
const BATCH_ENTRIES_MAX = 1000;

/**
 * How long the lane waits after a batch for the next files of the same writers, in ms. On a local network they come
 * within 5 ms.
 */
const BATCH_WINDOW_MS = 25;

/** The same with other gateways: each request takes several calls of Redis. */
const SHARED_BATCH_WINDOW_MS = 60;

/**
 * A file that has waited this long, in ms, fails together with the call before it when that finds the service away.
 * A call of its own would take another 25 s, and davfs2 and Cyberduck give up after 30.
 */
const OUTAGE_WAIT_MS = 5_000;

const EMPTY = new Uint8Array();

/** A file to be committed. */
export interface CommitRequest {
  readonly path: Path;
  readonly options: CommitOptions;
  readonly sizeBytes: number;
  /** Hash of the whole content, by which a commit with a lost answer is recognised. */
  readonly contentHash: string;
  /** All the bytes, at most 4 MiB, which must not change any more; or the session that holds them, with its last part sent. */
  readonly content: Uint8Array | UploadSession;
  readonly aroundCommit?: AroundCommit;
}

/** The files of the last batch's writers, which are expected to be as many in the next batch. */
interface BatchWindow {
  readonly expected: number;
  /** Ends the wait early. */
  readonly wait: AbortController;
}

/**
 * The commits of one account. The service refuses a second commit while it works on the first, so commits take
 * turns, and files that gather meanwhile are committed together (`finish_batch_v2`). When the service turns out to
 * accept several commits at once, short files are uploaded in parallel instead.
 *
 * Callers `commit` their files as they have them. The lane stages the bytes of short files in groups, keeps the order
 * of the writes to one path, and gives each file its own outcome, as if it had been committed alone. A file that comes
 * alone is one `upload`, at once; N short files at once take about N / 50 calls for their bytes and as many commits.
 */
export class CommitLane {
  /** Contents that are not sent yet. */
  #short: QueuedCommit[] = [];
  /** Files in sessions, which wait for their commit. */
  #ready: QueuedCommit[] = [];
  /** The end of the last write to each path. */
  readonly #paths = new Map<string, Promise<void>>();
  #commits = 0;
  #stagings = 0;
  #batchWindow: BatchWindow | undefined;

  constructor(
    private readonly calls: Pick<
      UploadCalls,
      'upload' | 'uploadsAtOnce' | 'commitsAreShared' | 'stageContents' | 'finishSession' | 'finishSessions'
    >,
    private readonly clock: Clock,
  ) {}

  /**
   * Resolves with the committed file. Throws `ApiError`, what `aroundCommit` throws, or the signal's reason: then
   * nothing is committed, unless the commit was under way. Writes to one path are committed in the order of these
   * calls.
   */
  commit(request: CommitRequest, signal?: AbortSignal): Promise<FileEntry> {
    const key = keyOf(request.path);
    const before = this.#paths.get(key);
    const file = new QueuedCommit(request, this.clock.instant(), signal, () => this.#advance());
    const ended = this.#process(file, before).catch((error: unknown) => file.reject(error));
    this.#paths.set(key, ended);
    void ended.then(() => {
      if (this.#paths.get(key) === ended) this.#paths.delete(key);
    });
    return file.outcome.then(async (entry) => {
      await ended;
      return entry;
    });
  }

  /** Resolves when `aroundCommit` has returned, so that no two of them for one path overlap. */
  async #process(file: QueuedCommit, before: Promise<void> | undefined): Promise<void> {
    // First of all, so that `aroundCommit` holds no lock while another write to the path needs it.
    if (before !== undefined) await before;
    const { aroundCommit = immediately } = file.request;
    await aroundCommit(() => {
      this.#enter(file);
      return file.ended;
    });
  }

  #enter(file: QueuedCommit): void {
    const isBusy = this.#isFull || this.#stagings > 0 || this.#short.length + this.#ready.length > 0;
    if (file.session) this.#ready.push(file);
    else if (isBusy && file.request.sizeBytes > SHORT_BYTES_MAX) void this.#stage([file]);
    else this.#short.push(file);
    this.#advance();
  }

  /** Starts every call that may start now. */
  #advance(): void {
    this.#removeGone();
    while (this.#stagings < GROUPS_MAX && isFull(this.#short)) void this.#stage(this.#takeGroup());
    if (this.#isFull) return;
    if (this.#ready.length > 0) void this.#commitReady();
    while (this.#isParallel && !this.#isFull && this.#short.length > 0) void this.#commitAlone();
    if (this.#isFull) return;
    // While a group is staged, the other files wait to form the next one: a call for each would be more calls.
    if (this.#stagings > 0 || this.#short.length === 0) return;
    if (this.#isWaitingForBatch()) return;
    this.#batchWindow?.wait.abort();
    this.#batchWindow = undefined;
    const group = this.#short.filter(({ mustGoAlone }) => !mustGoAlone);
    if (group.length >= this.#groupFilesMin) void this.#stage(this.#takeGroup());
    else void this.#commitAlone();
  }

  /** Whether the service would refuse one more commit. */
  get #isFull(): boolean {
    return this.#commits >= this.calls.uploadsAtOnce();
  }

  /** A batch of another gateway takes one file along too. */
  get #groupFilesMin(): number {
    return this.calls.commitsAreShared() ? 1 : GROUP_FILES_MIN;
  }

  get #isParallel(): boolean {
    return this.calls.uploadsAtOnce() > 1;
  }

  #isWaitingForBatch(): boolean {
    if (!this.#batchWindow || this.#short.some(({ mustGoAlone }) => mustGoAlone)) return false;
    return this.#short.length < this.#batchWindow.expected;
  }

  /** Removes the files whose callers have left and whose calls have not begun. */
  #removeGone(): void {
    for (const file of [...this.#short, ...this.#ready]) if (file.isGone) file.end();
    this.#short = this.#short.filter(({ isGone }) => !isGone);
    this.#ready = this.#ready.filter(({ isGone }) => !isGone);
  }

  #takeGroup(): QueuedCommit[] {
    const group: QueuedCommit[] = [];
    let sizeBytes = 0;
    for (const file of this.#short) {
      sizeBytes += file.request.sizeBytes;
      if (group.length === GROUP_FILES_MAX || (group.length > 0 && sizeBytes > GROUP_BYTES_MAX)) break;
      if (!file.mustGoAlone) group.push(file);
    }
    this.#short = this.#short.filter((file) => !group.includes(file));
    return group;
  }

  /** Sends the bytes of a group ahead of its commit. */
  async #stage(group: readonly QueuedCommit[]): Promise<void> {
    this.#stagings += 1;
    const outcomes = await this.#stagingOutcomes(group);
    this.#stagings -= 1;
    for (const [index, file] of group.entries()) {
      const outcome = outcomes[index];
      if (file.isGone) file.end();
      else if (!outcome || outcome instanceof Error) this.#fail(file, outcome);
      else {
        file.session = outcome;
        this.#ready.push(file);
      }
    }
    this.#advance();
  }

  async #stagingOutcomes(group: readonly QueuedCommit[]): ReturnType<UploadCalls['stageContents']> {
    const contents = group.map(({ request, bytes = EMPTY }) => ({
      bytes,
      contentHash: request.contentHash,
    }));
    try {
      return await this.calls.stageContents(contents);
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      return group.map(() => failure);
    }
  }

  async #commitAlone(): Promise<void> {
    const [file] = this.#short.splice(0, 1);
    if (!file) return;
    const { bytes = EMPTY, request, signal } = file;
    const { contentHash } = request;
    const options = { ...request.options, contentHash, yields: !file.mustGoAlone };
    await this.#commitSingly(file, () => this.calls.upload(request.path, bytes, options, signal));
  }

  async #commitReady(): Promise<void> {
    const files = this.#ready.splice(0, BATCH_ENTRIES_MAX);
    const [sole] = files;
    if (sole && files.length === 1 && !this.calls.commitsAreShared()) {
      const { signal } = sole;
      return this.#commitSingly(sole, () => this.calls.finishSession(sole.sessionCommit(), signal));
    }
    await this.#commitBatch(files);
  }

  /** Commits one file by a call of its own. */
  async #commitSingly(file: QueuedCommit, commit: () => Promise<FileEntry>): Promise<void> {
    this.#commits += 1;
    try {
      file.resolve(await commit());
    } catch (error) {
      this.#fail(file, error);
    }
    this.#commits -= 1;
    this.#advance();
  }

  /**
   * Commits several files in one call. Returns when the first outcome is final: entries that the service refused for
   * now are retried beside the next commit.
   */
  async #commitBatch(files: readonly QueuedCommit[]): Promise<void> {
    this.#commits += 1;
    await new Promise<void>((answered) => {
      const commits = files.map((file) => file.sessionCommit());
      const onOutcome = (index: number, outcome: FileEntry | Error) => {
        const file = files[index];
        if (outcome instanceof Error) this.#fail(file, outcome);
        else file?.resolve(outcome);
        answered();
      };
      const done = this.calls.finishSessions(commits, undefined, onOutcome);
      done
        .catch((error: unknown) => {
          for (const file of files) this.#fail(file, error);
        })
        .finally(answered);
    });
    this.#commits -= 1;
    this.#openBatchWindow(files.filter(({ bytes }) => bytes).length + this.#short.length);
    this.#advance();
  }

  /** Waits a short while for the next files of a batch's writers, which come nearly at once. */
  #openBatchWindow(expected: number): void {
    if (expected < Math.max(2, this.#groupFilesMin)) return;
    this.#batchWindow?.wait.abort();
    const batchWindow = { expected, wait: new AbortController() };
    this.#batchWindow = batchWindow;
    const end = () => {
      if (this.#batchWindow !== batchWindow) return;
      this.#batchWindow = undefined;
      this.#advance();
    };
    const windowMs = this.calls.commitsAreShared() ? SHARED_BATCH_WINDOW_MS : BATCH_WINDOW_MS;
    this.clock.sleep(windowMs, batchWindow.wait.signal).then(end, end);
  }

  #fail(file: QueuedCommit | undefined, error: unknown): void {
    if (file && error instanceof TurnTaken) {
      // Committed together with the files of the other gateways, it takes no turn of its own.
      (file.session ? this.#ready : this.#short).unshift(file);
      return;
    }
    if (file?.bytes && !file.mustGoAlone && isStagingRefusal(error)) {
      file.mustGoAlone = true;
      file.session = undefined;
      this.#short.unshift(file);
      return;
    }
    file?.reject(error);
    if (isApiFailure(error, 'offline', 'unavailable', 'rate-limited')) this.#failLongWaiting(error);
  }

  /** Without this, the files would fail one after the other, and the last of them after minutes. */
  #failLongWaiting(error: ApiError): void {
    const hasWaited = ({ since }: QueuedCommit) => elapsedMs(this.clock, since) >= OUTAGE_WAIT_MS;
    for (const file of [...this.#short, ...this.#ready]) if (hasWaited(file)) file.reject(error);
    this.#short = this.#short.filter((file) => !hasWaited(file));
    this.#ready = this.#ready.filter((file) => !hasWaited(file));
  }
}

function immediately<T>(commit: () => Promise<T>): Promise<T> {
  return commit();
}

function isFull(files: readonly QueuedCommit[]): boolean {
  const group = files.filter(({ mustGoAlone }) => !mustGoAlone);
  if (group.length >= GROUP_FILES_MAX) return true;
  return (
    group.length > 1 && group.reduce((sum, { request }) => sum + request.sizeBytes, 0) >= GROUP_BYTES_MAX
  );
}

/** Whether the service refused how the bytes were staged; an `upload` of its own may still store the file. */
function isStagingRefusal(error: unknown): boolean {
  return isApiFailure(error, 'session-gone', 'incorrect-offset', 'bad-request', 'not-allowed', 'foreign');
}

/** A file on its way through the commit lane. */
class QueuedCommit {
  /** The caller's result: rejects at once when the signal is aborted, even if the commit is under way. */
  readonly outcome: Promise<FileEntry>;
  /** Resolves when no call is made for this file any more. Never rejects. */
  readonly ended: Promise<void>;
  /** The bytes of a short file; `undefined` for one that came in a session. */
  readonly bytes: Uint8Array | undefined;
  session: UploadSession | undefined;
  /** Must be sent by an `upload` of its own, because staging it or committing it in a batch failed. */
  mustGoAlone = false;
  #resolve: (entry: FileEntry) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  #end: () => void = () => {};
  readonly #leave: () => void;

  /** Calls `onGone` when the signal is aborted. */
  constructor(
    readonly request: CommitRequest,
    readonly since: Instant,
    readonly signal: AbortSignal | undefined,
    onGone: () => void,
  ) {
    const { content } = request;
    if (content instanceof Uint8Array) this.bytes = content;
    else this.session = content;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#leave = () => {
      this.#reject(signal?.reason);
      onGone();
    };
    signal?.addEventListener('abort', this.#leave, { once: true });
    if (signal?.aborted) this.#reject(signal.reason);
  }

  /** Whether nobody waits for the outcome any more. */
  get isGone(): boolean {
    return this.signal?.aborted ?? false;
  }

  /** Returns the arguments of the commit of a file whose bytes are in a session. */
  sessionCommit(): SessionCommit {
    const { path, options, sizeBytes, contentHash } = this.request;
    if (!this.session) throw new Error('the file is not in a session yet');
    return { session: this.session, path, options, sizeBytes, contentHash };
  }

  resolve(entry: FileEntry): void {
    this.#resolve(entry);
    this.end();
  }

  reject(reason: unknown): void {
    this.#reject(reason);
    this.end();
  }

  /** Marks the file as ended, so that the next write to its path may begin. */
  end(): void {
    this.signal?.removeEventListener('abort', this.#leave);
    this.#end();
  }
}
