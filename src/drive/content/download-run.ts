import { createHash } from 'node:crypto';
import type { FileEntry } from '../../api/remote.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { Condition } from '../../util/wait.ts';
import type { BlockBuffers, RefCounted, SharedBuffer } from './block-buffers.ts';
import { blockAt, contentKeyOf, rangeOfBlock } from './blocks.ts';
import { type DownloadDeps, ResumingDownload, unreadable } from './resuming-download.ts';

/**
 * The download of one block, or of the part of it from `start` up to `end`. The bytes stay as long as a reader retains
 * the fetch, so that any number of readers can follow it, and join at any offset.
 */
export class BlockFetch implements RefCounted {
  readonly #buffer: SharedBuffer;
  #filledBytes = 0;
  #failure: { readonly reason: unknown } | undefined;
  readonly #changed = new Condition();
  /** Whether the block should enter the cache. */
  isWanted = false;
  /** Whether its last bytes are shown only when all of them are known to be right. */
  isChecked = false;
  /** Whether the disk of the cache was too far behind to take the block. */
  isRefused = false;

  /** `start` and `end` are offsets within the block. The caller releases the fetch. */
  constructor(
    buffers: BlockBuffers,
    readonly run: DownloadRun,
    readonly index: number,
    readonly start: number,
    readonly end: number,
  ) {
    this.#buffer = buffers.take(end - start);
  }

  get missingBytes(): number {
    return this.end - this.start - this.#filledBytes;
  }

  get buffer(): SharedBuffer {
    return this.#buffer;
  }

  has(offset: number): boolean {
    return offset >= this.start && offset < this.end;
  }

  retain(): void {
    this.#buffer.retain();
  }

  release(): void {
    this.#buffer.release();
  }

  /** The place for the missing bytes. */
  get room(): Buffer {
    return this.#buffer.bytes.subarray(this.#filledBytes);
  }

  /** Shows the first `bytes` bytes of `room` to the readers. */
  filled(bytes: number): void {
    this.#filledBytes += bytes;
    this.#changed.notify();
  }

  /** Ends the fetch without the missing bytes; readers get `reason`. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#changed.notify();
  }

  /**
   * Returns the bytes of the block from `from` up to `to`, or the first of them that have come, possibly none. They are
   * valid while the reader retains the fetch. Throws the reason why the fetch failed.
   */
  available(from: number, to: number): Uint8Array {
    if (this.#failure) throw this.#failure.reason;
    const first = from - this.start;
    const last = Math.min(to - this.start, this.#filledBytes);
    return this.#buffer.bytes.subarray(first, Math.max(first, last));
  }

  /** Resolves when more bytes have come or none will come; rejects with the signal's reason. */
  change(signal: AbortSignal): Promise<void> {
    return this.#changed.wait(signal);
  }
}

/** The owner of all runs and of the blocks that they fetch. */
export interface RunOwner {
  readonly buffers: BlockBuffers;
  fetchStarted(fetch: BlockFetch): void;
  /** `complete`: all its bytes have come. */
  fetchEnded(fetch: BlockFetch, complete: boolean): void;
  runEnded(run: DownloadRun): void;
  /** Returns a function that checks a whole block by its SHA-256; `undefined` when that is not possible. */
  checkOfBlock(file: FileEntry, index: number): ((sha256: Buffer) => boolean) | undefined;
  /** Whether the block is cached, or another run fetches it. */
  hasBlock(file: FileEntry, index: number): boolean;
}

/**
 * One download that is cut into blocks. Each block is read as fast as it comes, and the next one only when a reader
 * asks for it; a run `ahead` fetches all its blocks by itself. Readers retain the run: when the last one releases it
 * before it has all it wanted, the run ends at once, otherwise with the current block.
 */
export class DownloadRun {
  readonly contentKey: string;
  readonly #stop = new AbortController();
  readonly #download: ResumingDownload;
  /** Start of the next fetch in the file. */
  #position: number;
  #fetch: BlockFetch | undefined;
  #readers = 0;
  #isClosed = false;
  /** Whether all its blocks enter the cache. */
  keepsAll = false;

  constructor(
    deps: DownloadDeps,
    private readonly owner: RunOwner,
    readonly file: FileEntry,
    private readonly range: ByteRange,
    readonly ahead: boolean,
  ) {
    this.contentKey = contentKeyOf(file);
    this.#position = range.start;
    this.#download = new ResumingDownload(deps, file, range, this.#stop.signal, { ahead });
  }

  /** Whether `next` would fetch from `position` on. */
  isAt(contentKey: string, position: number): boolean {
    return !this.#fetch && this.#position === position && this.contentKey === contentKey;
  }

  retain(): void {
    this.#readers++;
  }

  /** `isSatisfied`: the reader has got all it wanted, and did not go away. */
  release(isSatisfied: boolean): void {
    this.#readers--;
    if (this.#readers > 0) return;
    const continues = isSatisfied && (this.ahead || this.#fetch);
    if (!continues) this.#close(new Error('the download has no readers any more'));
  }

  /** Starts to fetch the next block. Only to be called between two blocks. */
  next(): BlockFetch {
    const index = blockAt(this.#position);
    const block = rangeOfBlock(this.file, index);
    const end = Math.min(block.end, this.range.end);
    const fetch = new BlockFetch(
      this.owner.buffers,
      this,
      index,
      this.#position - block.start,
      end - block.start,
    );
    this.#position = end;
    this.#fetch = fetch;
    this.owner.fetchStarted(fetch);
    this.#fill(fetch).catch((failure) => this.#close(failure));
    return fetch;
  }

  /** Fills the buffer of `fetch`, which stays retained meanwhile: a read under way may still write to it. */
  async #fill(fetch: BlockFetch): Promise<void> {
    fetch.retain();
    try {
      await this.#fillRetained(fetch);
    } finally {
      fetch.release();
    }
  }

  /** Shows the bytes as they come, but the last ones only when the block has passed all checks. */
  async #fillRetained(fetch: BlockFetch): Promise<void> {
    const block = rangeOfBlock(this.file, fetch.index);
    const isWhole = fetch.start === 0 && fetch.end === block.end - block.start;
    const isRight = isWhole ? this.owner.checkOfBlock(this.file, fetch.index) : undefined;
    const hash = isRight && createHash('sha256');
    fetch.isChecked = hash !== undefined;
    while (fetch.missingBytes > 0) {
      const { room } = fetch;
      const bytes = await this.#download.read(room);
      if (this.#isClosed) return;
      if (bytes === 0) throw unreadable(this.file, 'the download ended early');
      hash?.update(room.subarray(0, bytes));
      if (bytes === room.length) {
        if (this.#position === this.range.end) await this.#end();
        if (this.#isClosed) return;
        if (hash && !isRight(hash.digest()))
          throw unreadable(this.file, 'its bytes have another content hash');
      }
      fetch.filled(bytes);
    }
    // In the same turn as the last bytes: a reader that has got them may ask for the next block at once.
    this.#complete(fetch);
  }

  #complete(fetch: BlockFetch): void {
    this.#fetch = undefined;
    this.owner.fetchEnded(fetch, true);
    fetch.release();
    const isOver = this.#position >= this.range.end;
    const continues = this.ahead && !isOver && !this.owner.hasBlock(this.file, blockAt(this.#position));
    if (continues) this.next();
    else if (isOver || this.ahead || this.#readers === 0) this.#close(new Error('the download is over'));
  }

  /** Reads the end of the download, which follows the last byte: only then is its connection used again. */
  async #end(): Promise<void> {
    // A download throws when bytes follow.
    await this.#download.read(Buffer.allocUnsafe(1));
  }

  #close(reason: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const fetch = this.#fetch;
    this.#fetch = undefined;
    this.owner.runEnded(this);
    if (fetch) {
      this.owner.fetchEnded(fetch, false);
      fetch.fail(reason);
      fetch.release();
    }
    this.#stop.abort(reason);
  }
}
