import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError } from '../errors.ts';
import type { BlockBuffers, LentBuffer } from './block-buffers.ts';
import { blockAt, contentKeyOf, rangeOfBlock } from './blocks.ts';
import { type Upstream, upstreamBytes } from './resuming-download.ts';

/** Copied at a time: what a reader gets is its own, as the buffer of a block is used again. */
const COPY_BYTES = 64 * 1024;

/**
 * One block, or the part of it from `start` up to `end`, on its way from the service. Its bytes stay for as long
 * as somebody holds it, so that any number of readers can follow, wherever they come in.
 */
export class BlockFlight {
  readonly #buffer: LentBuffer;
  #filledBytes = 0;
  /** The network's own bytes that came last: whoever is that far gets them without a copy. */
  #latest: Uint8Array = new Uint8Array();
  #failure: { readonly reason: unknown } | undefined;
  #waiting = new Set<() => void>();
  /** Whether the block goes into the cache. */
  isWanted = false;
  /** Whether the cache's disk was too far behind to take it. */
  isRefused = false;

  /** `start`, `end`: within the block. Whoever makes it holds it. */
  constructor(
    buffers: BlockBuffers,
    readonly run: BlockRun,
    readonly index: number,
    readonly start: number,
    readonly end: number,
  ) {
    this.#buffer = buffers.lend(end - start);
  }

  get missingBytes(): number {
    return this.end - this.start - this.#filledBytes;
  }

  get buffer(): LentBuffer {
    return this.#buffer;
  }

  has(offset: number): boolean {
    return offset >= this.start && offset < this.end;
  }

  hold(): void {
    this.#buffer.hold();
  }

  release(): void {
    this.#buffer.release();
  }

  /** Adds bytes, at most the missing ones. */
  push(chunk: Uint8Array): void {
    this.#buffer.bytes.set(chunk, this.#filledBytes);
    this.#filledBytes += chunk.length;
    this.#latest = chunk;
    this.#wake();
  }

  /** The missing bytes will not come: who waits for them gets `reason`. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#wake();
  }

  /**
   * What is there of the bytes from `from` up to `to` of the block; maybe only the first of them, or nothing yet.
   * Throws what made it fail.
   */
  available(from: number, to: number): Uint8Array {
    if (this.#failure) throw this.#failure.reason;
    const first = from - this.start;
    const last = Math.min(to - this.start, this.#filledBytes);
    const latestStart = this.#filledBytes - this.#latest.length;
    if (first >= latestStart)
      return this.#latest.subarray(first - latestStart, Math.max(0, last - latestStart));
    return Buffer.from(this.#buffer.bytes.subarray(first, Math.min(last, first + COPY_BYTES)));
  }

  /** Resolves when there are more bytes, or none will come; rejects with the signal's reason. */
  change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const wake = () => {
        signal.removeEventListener('abort', stop);
        resolve();
      };
      const stop = () => {
        this.#waiting.delete(wake);
        reject(signal.reason);
      };
      signal.addEventListener('abort', stop, { once: true });
      this.#waiting.add(wake);
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }
}

/** Who keeps account of runs and of the blocks that they bring. */
export interface RunKeeper {
  readonly buffers: BlockBuffers;
  started(flight: BlockFlight, run: BlockRun): void;
  /** The flight is over; `complete` when it brought its block. */
  landed(flight: BlockFlight, run: BlockRun, complete: boolean): void;
  closed(run: BlockRun): void;
  /** Whether the block is there already, or somebody else brings it. */
  hasBlock(file: FileEntry, index: number): boolean;
}

/**
 * One answer of the service that is cut into blocks. Each block is read as fast as it comes, and the next one
 * only when someone asks for it; a run `ahead` goes through all its blocks by itself. Readers hold the run:
 * when the last one goes away in the middle it is ended at once, and otherwise with the block under way.
 */
export class BlockRun {
  readonly contentKey: string;
  readonly #stop = new AbortController();
  readonly #bytes: AsyncGenerator<Uint8Array, void, undefined>;
  #rest: Uint8Array = new Uint8Array();
  /** Where in the file the next block begins, or the part of a block that is wanted. */
  #next: number;
  #flight: BlockFlight | undefined;
  #holders = 0;
  #isClosed = false;
  /** Whether all its blocks enter the cache, whoever asks for them. */
  keepsAll = false;

  constructor(
    upstream: Upstream,
    private readonly keeper: RunKeeper,
    readonly file: FileEntry,
    private readonly range: ByteRange,
    readonly ahead: boolean,
  ) {
    this.contentKey = contentKeyOf(file);
    this.#next = range.start;
    this.#bytes = upstreamBytes(upstream, file, range, this.#stop.signal, { ahead });
  }

  /** Whether `next` would bring the byte at `position` at once. */
  isBefore(contentKey: string, position: number): boolean {
    return !this.#flight && this.#next === position && this.contentKey === contentKey;
  }

  hold(): void {
    this.#holders++;
  }

  /** `isContent`: the reader has got all it wanted; otherwise it has gone away. */
  leave(isContent: boolean): void {
    this.#holders--;
    if (this.#holders > 0) return;
    const goesOn = isContent && (this.ahead || this.#flight);
    if (!goesOn) this.#close(new Error('nobody reads this download any more'));
  }

  /** Starts the next block. Only between two blocks. */
  next(): BlockFlight {
    const index = blockAt(this.#next);
    const block = rangeOfBlock(this.file, index);
    const end = Math.min(block.end, this.range.end);
    const { buffers } = this.keeper;
    const flight = new BlockFlight(buffers, this, index, this.#next - block.start, end - block.start);
    this.#next = end;
    this.#flight = flight;
    this.keeper.started(flight, this);
    void this.#bring(flight);
    return flight;
  }

  async #bring(flight: BlockFlight): Promise<void> {
    try {
      await this.#fill(flight);
    } catch (failure) {
      this.#close(failure);
    }
  }

  /** Adds the bytes as they come, but the last ones only when nothing speaks against the block. */
  async #fill(flight: BlockFlight): Promise<void> {
    const { contentHash, sizeBytes } = this.file;
    // A file of one block is the one whose hash is known before its last bytes are given out.
    const hasher = contentHash && sizeBytes <= BLOCK_BYTES ? new ContentHasher() : undefined;
    while (flight.missingBytes > 0) {
      const piece = await this.#take(flight.missingBytes);
      // Closed meanwhile: the buffer is another's by now.
      if (this.#isClosed) return;
      hasher?.update(piece);
      if (piece.length === flight.missingBytes) {
        if (this.#next === this.range.end) await this.#end();
        if (this.#isClosed) return;
        if (hasher && hasher.digest() !== contentHash) throw this.#damaged('its bytes have another hash');
      }
      flight.push(piece);
    }
    // In the same turn as the last bytes: a reader that has got them may ask for the next block at once.
    this.#land(flight);
  }

  #land(flight: BlockFlight): void {
    this.#flight = undefined;
    this.keeper.landed(flight, this, true);
    flight.release();
    const isOver = this.#next >= this.range.end;
    const goesOn = this.ahead && !isOver && !this.keeper.hasBlock(this.file, blockAt(this.#next));
    if (goesOn) this.next();
    else if (isOver || this.ahead || this.#holders === 0) this.#close(new Error('this download is over'));
  }

  async #take(sizeBytesMax: number): Promise<Uint8Array> {
    while (this.#rest.length === 0) {
      const step = await this.#bytes.next();
      if (step.done) throw this.#damaged('the download ended early');
      this.#rest = step.value;
    }
    const piece = this.#rest.subarray(0, sizeBytesMax);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }

  /** Reads to the download's end, which is due: a connection that was read to its end can be used again. */
  async #end(): Promise<void> {
    while (!(await this.#bytes.next()).done);
  }

  #close(reason: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const flight = this.#flight;
    this.#flight = undefined;
    this.keeper.closed(this);
    if (flight) {
      this.keeper.landed(flight, this, false);
      flight.fail(reason);
      flight.release();
    }
    this.#stop.abort(reason);
    // After the abort nothing is left to be read: what this rejects with is known.
    this.#bytes.return().catch(() => {});
  }

  #damaged(how: string): FileError {
    return new FileError('broken', `${this.file.name} could not be read: ${how}`);
  }
}
