import { LRUCache } from 'lru-cache';
import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES } from '../../util/content-hash.ts';
import { smallest } from '../../util/extremes.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { BlockBuffers } from './block-buffers.ts';
import type { BlockCache } from './block-cache.ts';
import { blockAt, blockCount, blockKey, contentKeyOf, rangeOfBlock } from './blocks.ts';
import type { CachedContentCheck } from './cached-content-check.ts';
import { CachedSpans, type Span } from './cached-spans.ts';
import type { BlockFlight } from './download-run.ts';
import { BlockRun, type RunKeeper } from './download-run.ts';
import { Pace } from './parallelism.ts';
import type { Upstream } from './resuming-download.ts';
import { Held } from './retained-fetches.ts';

/** Blocks that are fetched for a client that reads one range after the other: enough to hide a round trip. */
const READ_AHEAD_BLOCKS = 2;

/** Runs for which nobody waits yet, of all readers together. */
const AHEAD_RUNS_MAX = 4;

/** Blocks held for readers that have several downloads at a time, of all readers together: 24 MiB. */
const RESERVED_MAX = 6;

/** How far from the last range's end the next may begin and still follow it: clients skip, and ask out of order. */
const SEQUENCE_GAP_BYTES = 1024 * 1024;

/** Files whose last read range is remembered. */
const SEQUENCES_MAX = 1000;

/** Blocks of a long range that enter the cache: more would push out what is read in parts, again and again. */
const KEPT_BLOCKS_MAX = 16;

/** What lies so little before the first byte wanted of a block comes with it: sooner than a call of its own. */
const LEAD_BYTES_MAX = 256 * 1024;

/** A fetch begins at a multiple of this, as a client that reads backwards or in odd steps asks for what is near. */
const LEAD_UNIT_BYTES = 64 * 1024;

/**
 * Bytes of files by blocks: from the cache, from a block that is on its way for another reader, or from the
 * service. No part of a block is fetched twice at a time. A block costs one call, or two: one from the byte that was asked
 * for first, which so is there after one round trip, and one for what is before it if that is ever asked for.
 */
export class BlockSource implements RunKeeper {
  readonly buffers = new BlockBuffers();
  /** By `flightKey`: most often one, of the whole block. */
  readonly #flights = new Map<string, readonly BlockFlight[]>();
  readonly #runs = new Set<BlockRun>();
  readonly #lastRanges = new LRUCache<string, ByteRange>({ max: SEQUENCES_MAX });
  #aheadCount = 0;
  #reservedCount = 0;

  constructor(
    private readonly upstream: Upstream,
    private readonly cache: BlockCache,
    private readonly check: CachedContentCheck,
  ) {}

  /**
   * The bytes of `range`, as they come. When `signal` is aborted, what only this reader wanted is aborted too.
   * Of its blocks the first enter the cache, or all when it `isWhole` and there is room.
   */
  async *read(
    file: FileEntry,
    range: ByteRange,
    signal: AbortSignal,
    isWhole = false,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const isCheckedWhileRead = isWhole && file.contentHash !== undefined;
    if (!isCheckedWhileRead) await this.check.forgetUnproven(file);
    const reader = new Held();
    const cached = new CachedSpans(this.cache, this.buffers, file, range.end);
    const pace = new Pace(this.upstream.clock);
    let keptEnd = isWhole ? this.#wholeKeptEnd(file) : blockAt(range.start) + KEPT_BLOCKS_MAX;
    const lastIndex = blockAt(range.end - 1);
    const isSequential = this.#follows(file, range);
    let position = range.start;
    try {
      while (position < range.end) {
        const index = blockAt(position);
        if (isSequential && index === lastIndex && !reader.isAhead) this.#readAhead(file, index + 1, reader);
        const isComing =
          reader.reserved(index) || this.#underWay(file, index, position - index * BLOCK_BYTES);
        const span = isComing ? undefined : await cached.take(position);
        if (span) {
          position += span.sizeBytes;
          yield* ownPieces(span);
          continue;
        }
        pace.review();
        const flight = this.#next(file, position, range.end, reader, pace.lanes);
        flight.isWanted ||= index < keptEnd;
        this.#reserve(file, index + 1, { lastIndex, keptEnd, lanes: pace.lanes }, reader);
        const { start } = rangeOfBlock(file, index);
        const to = Math.min(start + flight.end, range.end);
        while (position < to) {
          const piece = flight.available(position - start, to - start);
          position += piece.length;
          pace.came(piece.length);
          if (piece.length > 0) yield piece;
          else await pace.waitFor(flight.change(signal));
        }
        // Read as a whole again, each hole would cost a call.
        if (flight.isRefused && isWhole) keptEnd = index;
      }
    } finally {
      this.#lastRanges.set(contentKeyOf(file), { start: range.start, end: position });
      this.#reservedCount -= reader.reservedCount;
      cached.close();
      reader.leave(position >= range.end && !signal.aborted);
      // Who reads all of it checks it while reading.
      if (!isWhole) void this.check.start(file);
    }
  }

  started(flight: BlockFlight, run: BlockRun): void {
    const key = flightKey(run.file, flight.index);
    this.#flights.set(key, [...(this.#flights.get(key) ?? []), flight]);
  }

  landed(flight: BlockFlight, run: BlockRun, complete: boolean): void {
    const flights = flightKey(run.file, flight.index);
    const others = this.#flights.get(flights)?.filter((other) => other !== flight) ?? [];
    if (others.length > 0) this.#flights.set(flights, others);
    else this.#flights.delete(flights);
    if (!complete || !(flight.isWanted || run.keepsAll)) return;
    const { buffer, start } = flight;
    const key = blockKey(run.file, flight.index);
    this.check.blockCame(run.file);
    flight.isRefused = !this.cache.keep(key, buffer.bytes, { from: start, lease: buffer });
  }

  closed(run: BlockRun): void {
    this.#runs.delete(run);
    if (run.ahead) this.#aheadCount--;
  }

  hasBlock(file: FileEntry, index: number): boolean {
    return this.#flights.has(flightKey(file, index)) || this.cache.has(blockKey(file, index));
  }

  #underWay(file: FileEntry, index: number, at: number): BlockFlight | undefined {
    return this.#flights.get(flightKey(file, index))?.find((flight) => flight.has(at));
  }

  /** All or nothing: of a file that is read as a whole the first blocks are of no more use than the last. */
  #wholeKeptEnd(file: FileEntry): number {
    const count = blockCount(file.sizeBytes);
    return count <= KEPT_BLOCKS_MAX || this.cache.hasRoomFor(file.sizeBytes) ? count : 0;
  }

  /** The flight that brings the byte at `position`, followed: one that was reserved, or as `#flight` finds it. */
  #next(file: FileEntry, position: number, end: number, reader: Held, lanes: number): BlockFlight {
    const index = blockAt(position);
    const reserved = reader.reserved(index);
    if (reserved) this.#reservedCount--;
    // Of several downloads each brings one block, so that they can be started and ended one by one.
    const runEnd = lanes > 1 ? Math.min(end, rangeOfBlock(file, index).end) : end;
    const flight = reserved ?? this.#flight(file, position, runEnd);
    reader.follow(flight);
    return flight;
  }

  /** Starts the downloads of the blocks from `from` on that make up the number of `lanes`. */
  #reserve(
    file: FileEntry,
    from: number,
    { lastIndex, keptEnd, lanes }: { lastIndex: number; keptEnd: number; lanes: number },
    reader: Held,
  ): void {
    for (let index = from; index < from + lanes - 1 && index <= lastIndex; index++) {
      if (this.#reservedCount >= RESERVED_MAX) return;
      if (reader.reserved(index) || this.hasBlock(file, index)) continue;
      const flight = this.#start(file, rangeOfBlock(file, index), false).next();
      flight.isWanted = index < keptEnd;
      reader.reserve(flight);
      this.#reservedCount++;
    }
  }

  /** A flight that brings the byte at `position`: one under way, the next of a run, or the first of a new run. */
  #flight(file: FileEntry, position: number, end: number): BlockFlight {
    const index = blockAt(position);
    const block = rangeOfBlock(file, index);
    const flight = this.#underWay(file, index, position - block.start);
    if (flight) return flight;
    const key = contentKeyOf(file);
    for (const run of this.#runs) if (run.isBefore(key, position)) return run.next();
    const partEnd = this.#missingUpTo(file, index, position - block.start);
    if (partEnd < block.end) return this.#start(file, { start: block.start, end: partEnd }, false).next();
    const start = block.start + leadOf(file, position - block.start);
    return this.#start(file, { start, end: this.#runEnd(file, index + 1, end) }, false).next();
  }

  /** Where the part of a block that is missing at `at` ends: at its end, or where a later part begins. */
  #missingUpTo(file: FileEntry, index: number, at: number): number {
    const block = rangeOfBlock(file, index);
    const comes = this.#flights.get(flightKey(file, index))?.map(({ start }) => start) ?? [];
    const isThere = this.cache.partAfter(blockKey(file, index), at) ?? block.end;
    return block.start + smallest([isThere, block.end - block.start, ...comes.filter((start) => start > at)]);
  }

  /** The end of the blocks from `index` on that are missing and hold bytes before `end`. */
  #runEnd(file: FileEntry, index: number, end: number): number {
    let next = index;
    while (next * BLOCK_BYTES < end && !this.hasBlock(file, next)) next++;
    return rangeOfBlock(file, next - 1).end;
  }

  #start(file: FileEntry, range: ByteRange, ahead: boolean): BlockRun {
    const run = new BlockRun(this.upstream, this, file, range, ahead);
    this.#runs.add(run);
    if (ahead) this.#aheadCount++;
    return run;
  }

  #readAhead(file: FileEntry, from: number, reader: Held): void {
    const end = Math.min(from + READ_AHEAD_BLOCKS, blockCount(file.sizeBytes));
    let first = from;
    while (first < end && this.hasBlock(file, first)) first++;
    if (first >= end || this.#aheadCount >= AHEAD_RUNS_MAX) return;
    const { start } = rangeOfBlock(file, first);
    const run = this.#start(file, { start, end: this.#runEnd(file, first + 1, end * BLOCK_BYTES) }, true);
    run.keepsAll = true;
    reader.sendAhead(run);
    run.next();
  }

  #follows(file: FileEntry, { start }: ByteRange): boolean {
    const last = this.#lastRanges.get(contentKeyOf(file));
    return last !== undefined && start > last.start && Math.abs(start - last.end) <= SEQUENCE_GAP_BYTES;
  }
}

function* ownPieces(span: Span): Generator<Uint8Array, void, undefined> {
  try {
    yield* span.pieces();
  } finally {
    span.release();
  }
}

/** Where in a block the fetch begins whose first wanted byte is at `at`. */
function leadOf(file: FileEntry, at: number): number {
  // Of a file of one block all is fetched: only so can its hash be checked.
  if (at <= LEAD_BYTES_MAX || file.sizeBytes <= BLOCK_BYTES) return 0;
  return at - (at % LEAD_UNIT_BYTES);
}

function flightKey(file: FileEntry, index: number): string {
  return `${index} ${contentKeyOf(file)}`;
}
