import { ApiError } from '../../src/api/errors.ts';
import type { Download, FileEntry, Remote } from '../../src/api/remote.ts';
import type {
  CommitOptions,
  SessionCommit,
  ShortContent,
  UploadCalls,
  UploadPart,
  UploadSession,
} from '../../src/api/write/upload-calls.ts';
import { BLOCK_BYTES, contentHashOf } from '../../src/util/content-hash.ts';
import { nameOf, type Path } from '../../src/util/path.ts';
import type { ByteRange } from '../../src/util/ranges.ts';
import { readOf } from './byte-source.ts';

type Call =
  | { readonly what: 'upload'; readonly path: Path }
  | { readonly what: 'startSession' | 'finishSession' }
  | { readonly what: 'stageContents' | 'finishSessions'; readonly count: number }
  | { readonly what: 'appendSession'; readonly part: UploadPart }
  | { readonly what: 'download'; readonly range: ByteRange | undefined; readonly ahead: boolean };

/** A fault of a download. Positions are offsets in the file. */
export interface DownloadFault {
  /** The connection breaks before this byte. */
  readonly cutAt?: number;
  /** The body ends before this byte without an error. */
  readonly endAt?: number;
  /** This byte is changed. */
  readonly flipAt?: number;
  /** The download pauses before this byte until `release` or an abort. */
  readonly placeholderAt?: number;
}

/**
 * The upload and download calls of the service, in memory. Uploads check sessions as strictly as the service
 * and have a hook before each call; downloads have a list of faults.
 */
export class BytesRemote implements UploadCalls, Pick<Remote, 'download'> {
  readonly calls: Call[] = [];
  readonly files = new Map<Path, FileEntry>();
  /** Contents by revision. */
  readonly contents = new Map<string, Uint8Array>();
  /** Called before each call is carried out; may wait or throw. */
  before: (call: Call, signal: AbortSignal | undefined) => Promise<void> | void = () => {};
  /** Returns the failure of an entry of `finishSessions`, or `undefined` for success. */
  outcomeOf: (commit: SessionCommit) => Error | undefined = () => undefined;
  /** Whether other gateways commit too. */
  isShared = false;
  /** Maximum number of parallel uploads. */
  sideBySide = 1;
  /** Faults of the next downloads, in order. A download without one succeeds. */
  faults: DownloadFault[] = [];
  /** Size of a chunk of a download, in bytes. */
  chunkBytes = 64 * 1024;
  /** Called before each chunk of a download; may wait. */
  pace: (sizeBytes: number, signal?: AbortSignal) => Promise<void> = async () => {};
  /** Number of running downloads. */
  openDownloads = 0;
  /** Number of bytes that all downloads have sent. */
  downloadedBytes = 0;
  readonly #sessions = new Map<string, { parts: Map<number, Uint8Array>; sizeBytes: number | undefined }>();
  #revCount = 0;
  #release: (() => void)[] = [];

  /** Resumes paused downloads. */
  release(): void {
    for (const go of this.#release.splice(0)) go();
  }

  /** Stores a file without a call. */
  put(path: Path, bytes: Uint8Array, contentHash = contentHashOf(bytes)): FileEntry {
    const rev = `rev${++this.#revCount}`;
    const entry: FileEntry = {
      kind: 'file',
      id: `id:${path}`,
      path,
      name: nameOf(path),
      rev,
      sizeBytes: bytes.length,
      contentHash,
      modifiedMs: 0,
      committedMs: 0,
    };
    this.files.set(path, entry);
    this.contents.set(rev, bytes);
    return entry;
  }

  contentAt(path: Path): Uint8Array | undefined {
    const entry = this.files.get(path);
    return entry && this.contents.get(entry.rev);
  }

  countOf(what: Call['what']): number {
    return this.calls.filter((call) => call.what === what).length;
  }

  async upload(
    path: Path,
    body: Uint8Array,
    _options: CommitOptions,
    signal?: AbortSignal,
  ): Promise<FileEntry> {
    await this.#begin({ what: 'upload', path }, signal);
    return this.put(path, Uint8Array.from(body));
  }

  commitsAreShared(): boolean {
    return this.isShared;
  }

  uploadsAtOnce(): number {
    return this.sideBySide;
  }

  async startSession(signal?: AbortSignal): Promise<UploadSession> {
    await this.#begin({ what: 'startSession' }, signal);
    return this.#newSession();
  }

  #newSession(): UploadSession {
    const id = `session${this.#sessions.size + 1}`;
    this.#sessions.set(id, { parts: new Map(), sizeBytes: undefined });
    return { id };
  }

  async appendSession(session: UploadSession, part: UploadPart, signal?: AbortSignal): Promise<void> {
    await this.#begin({ what: 'appendSession', part }, signal);
    const state = this.#session(session);
    if (state.sizeBytes !== undefined) throw new ApiError('session-gone', 'closed');
    if (part.offset % BLOCK_BYTES !== 0 || (!part.last && part.bytes.length % BLOCK_BYTES !== 0))
      throw new ApiError('bad-request', 'not at a multiple of 4 MiB');
    if (part.contentHash !== undefined && part.contentHash !== contentHashOf(part.bytes))
      throw new ApiError('hash-mismatch', 'the part has another hash');
    state.parts.set(part.offset, Uint8Array.from(part.bytes));
    if (part.last) state.sizeBytes = part.offset + part.bytes.length;
  }

  async stageContents(
    contents: readonly ShortContent[],
    signal?: AbortSignal,
  ): Promise<readonly UploadSession[]> {
    await this.#begin({ what: 'stageContents', count: contents.length }, signal);
    return contents.map(({ bytes, contentHash }) => {
      if (contentHash !== contentHashOf(bytes)) throw new ApiError('hash-mismatch', 'another hash');
      const session = this.#newSession();
      const state = this.#session(session);
      state.parts.set(0, Uint8Array.from(bytes));
      state.sizeBytes = bytes.length;
      return session;
    });
  }

  async finishSession(commit: SessionCommit, signal?: AbortSignal): Promise<FileEntry> {
    await this.#begin({ what: 'finishSession' }, signal);
    return this.#finish(commit);
  }

  async finishSessions(
    commits: readonly SessionCommit[],
    signal?: AbortSignal,
    onOutcome: (index: number, outcome: FileEntry | Error) => void = () => {},
  ): Promise<readonly (FileEntry | Error)[]> {
    await this.#begin({ what: 'finishSessions', count: commits.length }, signal);
    return commits.map((commit, index) => {
      const outcome = this.outcomeOf(commit) ?? this.#finish(commit);
      onOutcome(index, outcome);
      return outcome;
    });
  }

  #finish(commit: SessionCommit): FileEntry {
    const { parts, sizeBytes } = this.#session(commit.session);
    if (sizeBytes !== commit.sizeBytes) throw new ApiError('incorrect-offset', 'not closed at this size');
    const bytes = Buffer.concat([...parts].sort(([one], [other]) => one - other).map(([, part]) => part));
    if (bytes.length !== sizeBytes) throw new ApiError('bad-request', 'a part is missing');
    this.#sessions.delete(commit.session.id);
    return this.put(commit.path, bytes);
  }

  async download(
    file: FileEntry,
    range: ByteRange | undefined,
    signal?: AbortSignal,
    options?: { readonly ahead?: boolean },
  ): Promise<Download> {
    const fault = this.faults.shift() ?? {};
    await this.#begin({ what: 'download', range, ahead: options?.ahead ?? false }, signal);
    const content = this.contents.get(file.rev);
    if (!content) throw new ApiError('not-found', 'path/not_found');
    const { start, end } = range ?? { start: 0, end: content.length };
    const chunks = this.#chunks(content, start, Math.min(end, content.length), fault, signal);
    return { file, read: readOf(chunks, signal) };
  }

  async *#chunks(
    content: Uint8Array,
    start: number,
    end: number,
    fault: DownloadFault,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    this.openDownloads++;
    let isReleased = false;
    try {
      const stop = Math.min(end, fault.cutAt ?? end, fault.endAt ?? end);
      for (let at = start; at < stop; ) {
        if (!isReleased && fault.placeholderAt !== undefined && at >= fault.placeholderAt) {
          await this.#held(signal);
          isReleased = true;
        }
        signal?.throwIfAborted();
        const chunk = content.subarray(at, Math.min(at + this.chunkBytes, stop, nextHold(fault, at)));
        await this.pace(chunk.length, signal);
        signal?.throwIfAborted();
        this.downloadedBytes += chunk.length;
        yield flipped(chunk, (fault.flipAt ?? -1) - at);
        at += chunk.length;
      }
      if (fault.cutAt !== undefined && fault.cutAt < end)
        throw new ApiError('offline', 'the connection was lost', { cut: { receivedBytes: stop - start } });
    } finally {
      this.openDownloads--;
    }
  }

  #held(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#release.push(resolve);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }

  async #begin(call: Call, signal: AbortSignal | undefined): Promise<void> {
    this.calls.push(call);
    // As over a network, no call is answered in the turn of the event loop that made it.
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
    await this.before(call, signal);
  }

  #session({ id }: UploadSession) {
    const session = this.#sessions.get(id);
    if (!session) throw new ApiError('session-gone', 'lookup_failed/not_found');
    return session;
  }
}

function nextHold({ placeholderAt }: DownloadFault, at: number): number {
  return placeholderAt !== undefined && at < placeholderAt ? placeholderAt : Number.POSITIVE_INFINITY;
}

function flipped(chunk: Uint8Array, at: number): Uint8Array {
  if (at < 0 || at >= chunk.length) return chunk;
  const damaged = Uint8Array.from(chunk);
  damaged[at] = (damaged[at] ?? 0) ^ 1;
  return damaged;
}

/** Returns a promise that only rejects, when the signal is aborted. */
export function never(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
