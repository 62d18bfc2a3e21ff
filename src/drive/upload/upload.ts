import { ApiError, type ApiFailure } from '../../api/errors.ts';
import type { CommitOptions, FileEntry, Remote, UploadSession } from '../../api/remote.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import type { Path } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { WriteOptions } from '../files.ts';
import { BodyReader } from './body-reader.ts';
import type { CommitLane } from './commit-lane.ts';
import type { Turn } from './lane-member.ts';
import { Part } from './part.ts';
import { PartBuffers } from './part-buffers.ts';
import { PartSender } from './part-sender.ts';

export interface UploadLimits {
  /** Of one part of a session, in bytes: a multiple of 4 MiB. */
  readonly partBytes: number;
  /** Parts of one upload that are under way at a time, beside the one being gathered. */
  readonly inFlightMax: number;
  /** Part buffers of all uploads together; each upload may have one in any case. */
  readonly buffersMax: number;
}

/**
 * 8 MiB, as each call may count against a monthly number, and enough of them at a time to hide the 100 ms that each
 * takes; memory stays at 56 MiB an upload, and at 64 MiB for all that want more than one.
 */
export const UPLOAD_LIMITS: UploadLimits = { partBytes: 2 * BLOCK_BYTES, inFlightMax: 6, buffersMax: 8 };

/** A body of unknown length begins in a buffer of this size. */
const FIRST_BUFFER_BYTES = 64 * 1024;

export interface UploaderParts {
  readonly remote: Pick<Remote, 'startSession' | 'appendSession'>;
  readonly log: Log;
  /** Where short contents are sent and everything is committed. */
  readonly lane: Pick<CommitLane, 'commit'>;
  readonly limits?: Partial<UploadLimits>;
}

export interface Uploader {
  /**
   * Takes all of `body`, commits it at `path` and resolves with what the service made of it, once that is
   * known to be the same bytes. When `body` throws or `signal` is aborted nothing is committed, unless the
   * commit itself is under way: then the outcome is unknown. The commit happens `inTurn`, once the body is whole.
   *
   * Throws `FileError` `incomplete` for a body of another length than announced (before the commit),
   * `broken` when the service has committed other bytes, `ApiError`, the signal's reason, or what `body` throws.
   */
  store(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
    inTurn?: Turn,
  ): Promise<FileEntry>;
}

/** How bodies get to the service: a short one in a single call, a longer one as the parts of a session. */
export function createUploader({ remote, log, lane, limits }: UploaderParts): Uploader {
  const { partBytes, inFlightMax, buffersMax } = { ...UPLOAD_LIMITS, ...limits };
  const shared: Shared = {
    remote,
    log,
    lane,
    buffers: new PartBuffers(partBytes, buffersMax),
    inFlightMax,
  };
  return {
    async store(path, body, options, signal, inTurn) {
      signal?.throwIfAborted();
      const stop = new AbortController();
      const leave = () => stop.abort(signal?.reason);
      signal?.addEventListener('abort', leave, { once: true });
      try {
        return await new Upload(shared, path, body, options, stop, inTurn).run();
      } finally {
        signal?.removeEventListener('abort', leave);
      }
    },
  };
}

interface Shared {
  readonly remote: UploaderParts['remote'];
  readonly log: Log;
  readonly lane: UploaderParts['lane'];
  readonly buffers: PartBuffers;
  readonly inFlightMax: number;
}

/** The way of one body to the service. */
class Upload {
  readonly #whole = new ContentHasher();
  readonly #body: BodyReader;
  /** What of the last piece of the body is in no part yet. */
  #rest: Uint8Array = new Uint8Array();
  #receivedBytes = 0;

  constructor(
    private readonly shared: Shared,
    private readonly path: Path,
    body: AsyncIterable<Uint8Array>,
    private readonly options: WriteOptions,
    private readonly stop: AbortController,
    private readonly inTurn: Turn | undefined,
  ) {
    this.#body = new BodyReader(body, stop.signal);
  }

  async run(): Promise<FileEntry> {
    try {
      return await this.#store();
    } catch (failure) {
      // The first reason is the one to tell: what else fails is a call that was stopped because of it.
      const reason: unknown = this.stop.signal.aborted ? this.stop.signal.reason : failure;
      this.stop.abort(reason);
      this.#report(reason);
      throw reason;
    } finally {
      this.#body.close();
    }
  }

  async #store(): Promise<FileEntry> {
    const { sizeBytes } = this.options;
    if (sizeBytes !== undefined && sizeBytes > BLOCK_BYTES) return await this.#storeLong();
    const buffer = Buffer.allocUnsafeSlow(Math.min(sizeBytes ?? FIRST_BUFFER_BYTES, BLOCK_BYTES));
    const part = new Part(0, BLOCK_BYTES, buffer, (sha256) => this.#whole.addBlock(sha256));
    const isWhole = await this.#fill(part);
    return isWhole ? await this.#storeShort(part) : await this.#storeLong(part);
  }

  async #storeShort(part: Part): Promise<FileEntry> {
    part.digest();
    return await this.#commit(part.bytes);
  }

  /** What is committed is all that was received. */
  async #commit(content: Uint8Array | UploadSession): Promise<FileEntry> {
    const { signal } = this.stop;
    signal.throwIfAborted();
    const contentHash = this.#whole.digest();
    const { path, inTurn } = this;
    const sizeBytes = this.#receivedBytes;
    const request = { path, content, sizeBytes, contentHash, options: this.#commitOptions() };
    const committed = this.shared.lane.commit({ ...request, ...(inTurn && { inTurn }) }, signal);
    return this.#checked(await committed, contentHash);
  }

  async #storeLong(first?: Part): Promise<FileEntry> {
    const { remote, buffers, inFlightMax } = this.shared;
    const { signal } = this.stop;
    const sender = new PartSender(remote, buffers, inFlightMax, signal, (reason) => this.stop.abort(reason));
    const onBlock = (sha256: Buffer) => void this.#whole.addBlock(sha256);
    try {
      let part = first ?? (await sender.newPart(0, onBlock));
      while (!(await this.#fill(part))) {
        sender.send(part);
        part = await sender.newPart(part.end, onBlock);
      }
      return await this.#commit(await sender.close(part));
    } finally {
      sender.release();
    }
  }

  /** Fills `part`; whether the body has ended in it. A full part is known to have a successor, or to be the last. */
  async #fill(part: Part): Promise<boolean> {
    for (;;) {
      if (this.#rest.length === 0) {
        const piece = await this.#body.next();
        this.#receivedBytes += piece?.length ?? 0;
        this.#checkLength(piece === undefined);
        if (!piece) return true;
        this.#rest = piece;
      }
      if (part.isFull) return false;
      this.#rest = part.add(this.#rest);
    }
  }

  #checkLength(ended: boolean): void {
    const announced = this.options.sizeBytes;
    if (announced === undefined) return;
    const received = this.#receivedBytes;
    if (received > announced || (ended && received < announced)) {
      const amount = ended ? `only ${received}` : 'more';
      throw new FileError(
        'incomplete',
        `${announced} bytes were announced and ${amount} came: nothing was written; send the file again`,
      );
    }
  }

  #checked(entry: FileEntry, contentHash: string): FileEntry {
    const sameHash = entry.contentHash === undefined || entry.contentHash === contentHash;
    if (sameHash && entry.sizeBytes === this.#receivedBytes) return entry;
    const { id, rev } = entry;
    throw new FileError('broken', `${entry.name} was damaged on its way to the service: write it again`, {
      cause: new Error(`${id} ${rev} has the hash ${entry.contentHash} instead of ${contentHash}`),
    });
  }

  #report(failure: unknown): void {
    const isDamage =
      failure instanceof FileError ? failure.fault === 'broken' : isApiError(failure, 'hash-mismatch');
    if (!isDamage || !(failure instanceof Error)) return;
    const problem = failure.cause instanceof Error ? failure.cause.message : failure.message;
    this.shared.log.error('the service holds other bytes than it was sent', { problem });
  }

  #commitOptions(): CommitOptions {
    const { mode, modifiedMs } = this.options;
    return modifiedMs === undefined ? { mode } : { mode, modifiedMs };
  }
}

function isApiError(failure: unknown, kind: ApiFailure): boolean {
  return failure instanceof ApiError && failure.failure === kind;
}
