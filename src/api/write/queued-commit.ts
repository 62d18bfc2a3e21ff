import type { Instant } from '../../util/clock.ts';
import type { Path } from '../../util/path.ts';
import type { AroundCommit, FileEntry } from '../remote.ts';
import type { CommitOptions, SessionCommit, UploadSession } from './upload-calls.ts';

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

/** A file on its way through the commit lane. */
export class QueuedCommit {
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
