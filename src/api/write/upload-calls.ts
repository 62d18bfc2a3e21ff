import type { Path } from '../../util/path.ts';
import type { FileEntry, WriteMode } from '../remote.ts';

export interface CommitOptions {
  readonly mode: WriteMode;
  /** Milliseconds since 1970; the service keeps whole seconds. */
  readonly modifiedMs?: number;
}

/** Bytes sent before their commit. They are not charged to the account until then, and lapse after days. */
export interface UploadSession {
  readonly id: string;
}

export interface UploadPart {
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly last: boolean;
  /** The content hash of `bytes` alone; computed from them when absent. */
  readonly contentHash?: string;
}

/** All the bytes of a short file, at most 4 MiB. */
export interface ShortContent {
  readonly bytes: Uint8Array;
  readonly contentHash: string;
}

export interface SessionCommit {
  readonly session: UploadSession;
  readonly sizeBytes: number;
  /**
   * The hash of the whole content. With it, a commit whose answer was lost is recognised, and a commit of other
   * content fails with `hash-mismatch`.
   */
  readonly contentHash?: string;
  readonly path: Path;
  readonly options: CommitOptions;
}

/** The service's calls that write content, each retried until its outcome is final. Only `src/api/write` uses them. */
export interface UploadCalls {
  /**
   * `upload` in one call, at most 150 MiB. The service compares the bytes' hash before it commits: `contentHash`, computed
   * from them when absent. `yields`: throws `TurnTaken` instead of waiting for the commits of other gateways.
   */
  upload(
    path: Path,
    body: Uint8Array,
    options: CommitOptions & { readonly contentHash?: string; readonly yields?: boolean },
    signal?: AbortSignal,
  ): Promise<FileEntry>;
  /**
   * How many `upload` calls the service accepts in parallel, as far as is known. With 1, which is what a service
   * gets that refused a second one, files are committed sooner in a batch.
   */
  uploadsAtOnce(): number;
  /** Whether other gateways commit in the namespace now: their batches and ours are sent in one call. */
  commitsAreShared(): boolean;
  /** `upload_session/start` of a concurrent session: parts may be sent in any order and in parallel. */
  startSession(signal?: AbortSignal): Promise<UploadSession>;
  /**
   * `upload_session/append_v2` with the part's hash. Offset and size are multiples of 4 MiB, except the
   * size of the `last` part, which may be empty. Sending a part again is harmless. When the service already has the
   * beginning of a part (`incorrect_offset`), only the rest is sent again.
   */
  appendSession(session: UploadSession, part: UploadPart, signal?: AbortSignal): Promise<void>;
  /**
   * Sends short contents ahead of their commits, each into a closed session of its own: one content by
   * `upload_session/start`, several by `append_batch` into sessions from `start_batch`. Returns one outcome for each
   * content, in order.
   */
  stageContents(
    contents: readonly ShortContent[],
    signal?: AbortSignal,
  ): Promise<readonly (UploadSession | Error)[]>;
  /**
   * `upload_session/finish`: commits a session whose last part was sent. Throws `TurnTaken` instead of waiting for the commits
   * of other gateways.
   */
  finishSession(commit: SessionCommit, signal?: AbortSignal): Promise<FileEntry>;
  /**
   * `upload_session/finish_batch_v2`: up to 1,000 commits in one call, each with its own outcome. Calls `onOutcome`
   * for each as soon as it is final, while others are still retried.
   */
  finishSessions(
    commits: readonly SessionCommit[],
    signal?: AbortSignal,
    onOutcome?: (index: number, outcome: FileEntry | Error) => void,
  ): Promise<readonly (FileEntry | Error)[]>;
}
