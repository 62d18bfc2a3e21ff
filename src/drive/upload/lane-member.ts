import type { CommitOptions, FileEntry, SessionCommit, UploadSession } from '../../api/remote.ts';
import type { Instant } from '../../util/clock.ts';
import type { Path } from '../../util/path.ts';

/** One file to be committed: where its bytes are, and what becomes of them. */
export interface LaneCommit {
  readonly path: Path;
  readonly options: CommitOptions;
  readonly sizeBytes: number;
  /** Of all the bytes: by it a commit whose answer was lost is recognised. */
  readonly contentHash: string;
  /** All the bytes, at most 4 MiB, not to be changed any more; or the session that holds them, its last part sent. */
  readonly content: Uint8Array | UploadSession;
  readonly inTurn?: Turn;
}

/** Runs a commit when it may happen, until its end; throws why it may not happen any more. */
export type Turn = <T>(commit: () => Promise<T>) => Promise<T>;

/** A file on its way through the commit lane. */
export class LaneMember {
  /** For who asked: rejects at once when the signal is aborted, whatever is under way. */
  readonly outcome: Promise<FileEntry>;
  /** When nothing more happens to the file on its account. Never rejects. */
  readonly ended: Promise<void>;
  /** Bytes that have not been sent yet, or could not be. */
  readonly bytes: Uint8Array | undefined;
  session: UploadSession | undefined;
  /** Neither staged nor committed with others: that has failed. */
  mustGoAlone = false;
  #resolve: (entry: FileEntry) => void = () => {};
  #reject: (reason: unknown) => void = () => {};
  #end: () => void = () => {};
  readonly #leave: () => void;

  /** `onGone`: nobody waits for the outcome any more. */
  constructor(
    readonly request: LaneCommit,
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

  get isGone(): boolean {
    return this.signal?.aborted ?? false;
  }

  /** What the commit needs once the bytes are in a session. */
  sessionCommit(): SessionCommit {
    const { path, options, sizeBytes, contentHash } = this.request;
    if (!this.session) throw new Error('a file without a session is to be committed by one');
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

  /** Nothing more happens to it. */
  end(): void {
    this.signal?.removeEventListener('abort', this.#leave);
    this.#end();
  }
}
