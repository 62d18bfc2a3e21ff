import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import { FileError } from '../errors.ts';
import { BlockFlight } from './block-flight.ts';
import { contentKeyOf, rangeOfBlock } from './blocks.ts';
import { type Upstream, upstreamBytes } from './upstream.ts';

/** Who keeps account of runs and of the blocks that they bring. */
export interface RunKeeper {
  started(flight: BlockFlight, run: BlockRun): void;
  /** The flight is over; `complete` when it brought its block. */
  landed(flight: BlockFlight, run: BlockRun, complete: boolean): void;
  closed(run: BlockRun): void;
  /** Whether the block is there already, or somebody else brings it. */
  hasBlock(file: FileEntry, index: number): boolean;
}

/** The blocks from `first` up to, and not with, `end`. */
export interface BlockSpan {
  readonly first: number;
  readonly end: number;
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
  #nextIndex: number;
  #flight: BlockFlight | undefined;
  #holders = 0;
  #isClosed = false;

  constructor(
    upstream: Upstream,
    private readonly keeper: RunKeeper,
    readonly file: FileEntry,
    private readonly span: BlockSpan,
    readonly ahead: boolean,
  ) {
    this.contentKey = contentKeyOf(file);
    this.#nextIndex = span.first;
    const range = { start: span.first * BLOCK_BYTES, end: rangeOfBlock(file, span.end - 1).end };
    this.#bytes = upstreamBytes(upstream, file, range, this.#stop.signal, { ahead });
  }

  /** Whether `next` would bring this block at once. */
  isBefore(contentKey: string, index: number): boolean {
    return !this.#flight && this.#nextIndex === index && this.contentKey === contentKey;
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
    const index = this.#nextIndex++;
    const { start, end } = rangeOfBlock(this.file, index);
    const flight = new BlockFlight(this, index, end - start);
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
      hasher?.update(piece);
      if (piece.length === flight.missingBytes) {
        if (this.#nextIndex === this.span.end) await this.#end();
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
    const isOver = this.#nextIndex >= this.span.end;
    const goesOn = this.ahead && !isOver && !this.keeper.hasBlock(this.file, this.#nextIndex);
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
    }
    this.#stop.abort(reason);
    // After the abort nothing is left to be read: what this rejects with is known.
    this.#bytes.return().catch(() => {});
  }

  #damaged(how: string): FileError {
    return new FileError('broken', `${this.file.name} could not be read: ${how}`);
  }
}
