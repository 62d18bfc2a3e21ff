import { BodyReader } from '../../util/abort.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import type { Path } from '../../util/path.ts';
import type { Client } from '../context.ts';
import { ApiError, isApiFailure } from '../errors.ts';
import type { FileEntry, Remote, RemoteWriteOptions } from '../remote.ts';
import { CommitLane } from './commit-lane.ts';
import { type GatheredPart, PartBuffers, PartSender } from './part-sender.ts';
import type { CommitOptions, UploadCalls, UploadSession } from './upload-calls.ts';
import { uploadCallsOf } from './upload-routes.ts';

export interface UploadLimits {
  /** Size of one part of a session, in bytes: a multiple of 4 MiB. */
  readonly partBytes: number;
  /** Maximum number of parts of one upload that are sent in parallel, beside the one being gathered. */
  readonly inFlightMax: number;
  /** Maximum number of part buffers of all uploads together; each upload may have one in any case. */
  readonly buffersMax: number;
}

/**
 * 8 MiB, because each call may count against a monthly quota, and enough parts in parallel to hide the 100 ms that
 * each takes. Memory stays below 56 MiB for one upload, and 64 MiB for all that have more than one buffer.
 */
export const UPLOAD_LIMITS: UploadLimits = { partBytes: 2 * BLOCK_BYTES, inFlightMax: 6, buffersMax: 8 };

/** Size of the first buffer of a body of unknown length, in bytes. */
const FIRST_BUFFER_BYTES = 64 * 1024;

/**
 * Returns the method that writes files: the uploader reads a body into an `upload` call or the parts of a session, the
 * commit lane decides when a file is committed and with which others.
 */
export function writesOf(client: Client, limits?: Partial<UploadLimits>): Pick<Remote, 'write'> {
  const calls = uploadCallsOf(client);
  const uploader = new Uploader(calls, new CommitLane(calls, client.clock), client.log, limits);
  return { write: uploader.write.bind(uploader) };
}

/** Sends bodies to the service: a short one in a single call, a longer one as the parts of a session. */
export class Uploader {
  readonly #buffers: PartBuffers;
  readonly #inFlightMax: number;

  constructor(
    private readonly calls: Pick<UploadCalls, 'startSession' | 'appendSession'>,
    private readonly lane: Pick<CommitLane, 'commit'>,
    private readonly log: Log,
    limits: Partial<UploadLimits> = {},
  ) {
    const { partBytes, inFlightMax, buffersMax } = { ...UPLOAD_LIMITS, ...limits };
    this.#buffers = new PartBuffers(partBytes, buffersMax);
    this.#inFlightMax = inFlightMax;
  }

  /** Implements `Remote.write`. */
  async write(...[path, body, options, signal]: Parameters<Remote['write']>): Promise<FileEntry> {
    signal?.throwIfAborted();
    const stop = new AbortController();
    const leave = () => stop.abort(signal?.reason);
    signal?.addEventListener('abort', leave, { once: true });
    const newSender = () =>
      new PartSender(this.calls, this.#buffers, this.#inFlightMax, stop.signal, (reason) =>
        stop.abort(reason),
      );
    try {
      return await new Upload(path, body, options, stop, this.lane, newSender).run();
    } catch (error) {
      if (isApiFailure(error, 'hash-mismatch'))
        this.log.error('the service stored other bytes than davgate sent', { problem: error.message });
      throw error;
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }
}

/** One body on its way to the service. */
class Upload {
  readonly #whole = new ContentHasher();
  readonly #body: BodyReader;
  /** The end of the last piece of the body, which is in no part yet. */
  #rest: Uint8Array = new Uint8Array();
  #receivedBytes = 0;

  constructor(
    private readonly path: Path,
    body: AsyncIterable<Uint8Array>,
    private readonly options: RemoteWriteOptions,
    private readonly stop: AbortController,
    private readonly lane: Pick<CommitLane, 'commit'>,
    private readonly newSender: () => PartSender,
  ) {
    this.#body = new BodyReader(body, stop.signal);
  }

  async run(): Promise<FileEntry> {
    try {
      return await this.#store();
    } catch (error) {
      // The first reason is the one to report: later failures are calls that were stopped because of it.
      const reason: unknown = this.stop.signal.aborted ? this.stop.signal.reason : error;
      this.stop.abort(reason);
      throw reason;
    } finally {
      this.#body.close();
    }
  }

  async #store(): Promise<FileEntry> {
    const { sizeBytes } = this.options;
    if (sizeBytes !== undefined && sizeBytes > BLOCK_BYTES) return await this.#storeLong();
    const buffer = Buffer.allocUnsafeSlow(Math.min(sizeBytes ?? FIRST_BUFFER_BYTES, BLOCK_BYTES));
    const part = new Part(0, BLOCK_BYTES, buffer, this.#addBlock);
    const isWhole = await this.#fill(part);
    return isWhole ? await this.#storeShort(part) : await this.#storeLong(part);
  }

  async #storeShort(part: Part): Promise<FileEntry> {
    part.digest();
    return await this.#commit(part.bytes);
  }

  async #storeLong(first?: Part): Promise<FileEntry> {
    const sender = this.newSender();
    try {
      let part = first ?? (await this.#newPart(sender, 0));
      while (!(await this.#fill(part))) {
        sender.send(part);
        part = await this.#newPart(sender, part.end);
      }
      return await this.#commit(await sender.close(part));
    } finally {
      sender.release();
    }
  }

  async #newPart(sender: PartSender, offset: number): Promise<Part> {
    const buffer = await sender.takeBuffer();
    return new Part(offset, buffer.length, buffer, this.#addBlock);
  }

  /** Commits all that was received. */
  async #commit(content: Uint8Array | UploadSession): Promise<FileEntry> {
    const { signal } = this.stop;
    signal.throwIfAborted();
    const { path, options } = this;
    const { mode, modifiedMs, aroundCommit } = options;
    const commitOptions: CommitOptions = modifiedMs === undefined ? { mode } : { mode, modifiedMs };
    const sizeBytes = this.#receivedBytes;
    const contentHash = this.#whole.digest();
    const request = { path, content, sizeBytes, contentHash, options: commitOptions };
    return await this.lane.commit({ ...request, ...(aroundCommit && { aroundCommit }) }, signal);
  }

  /** Fills `part`; returns whether the body has ended in it. Reads ahead of a full part to find out. */
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

  #checkLength(hasEnded: boolean): void {
    const announced = this.options.sizeBytes;
    if (announced === undefined) return;
    const received = this.#receivedBytes;
    if (received > announced || (hasEnded && received < announced)) {
      const amount = hasEnded ? `only ${received}` : 'more';
      throw new ApiError('incomplete', `${announced} bytes were announced and ${amount} came`, {
        isUndone: true,
      });
    }
  }

  readonly #addBlock = (sha256: Buffer): void => void this.#whole.addBlock(sha256);
}

/** A part of a file whose bytes are gathered and hashed as they come. */
class Part implements GatheredPart {
  readonly #hasher: ContentHasher;
  #buffer: Buffer;
  sizeBytes = 0;

  /** Starts in `buffer` and grows up to `sizeBytesMax`. Calls `onBlock` with the hash of each block. */
  constructor(
    readonly offset: number,
    private readonly sizeBytesMax: number,
    buffer: Buffer,
    onBlock: (sha256: Buffer) => void,
  ) {
    this.#buffer = buffer;
    this.#hasher = new ContentHasher(onBlock);
  }

  get isFull(): boolean {
    return this.sizeBytes === this.sizeBytesMax;
  }

  get end(): number {
    return this.offset + this.sizeBytes;
  }

  get buffer(): Buffer {
    return this.#buffer;
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.sizeBytes);
  }

  /** Copies as much of `chunk` as fits, and returns the rest. */
  add(chunk: Uint8Array): Uint8Array {
    const piece = chunk.subarray(0, this.sizeBytesMax - this.sizeBytes);
    this.#makeRoom(this.sizeBytes + piece.length);
    this.#buffer.set(piece, this.sizeBytes);
    this.#hasher.update(piece);
    this.sizeBytes += piece.length;
    return chunk.subarray(piece.length);
  }

  /** Ends the part and returns the content hash of its bytes alone. */
  digest(): string {
    return this.#hasher.digest();
  }

  #makeRoom(neededBytes: number): void {
    if (neededBytes <= this.#buffer.length) return;
    const larger = Math.max(neededBytes, this.#buffer.length * 2);
    const buffer = Buffer.allocUnsafeSlow(Math.min(larger, this.sizeBytesMax));
    buffer.set(this.bytes);
    this.#buffer = buffer;
  }
}
