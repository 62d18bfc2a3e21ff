import { LRUCache } from 'lru-cache';
import type { FileEntry } from '../../api/remote.ts';
import type { ByteRange } from '../../util/ranges.ts';
import type { BlockFlight } from './block-flight.ts';
import { BlockRun, type BlockSpan, type RunKeeper } from './block-run.ts';
import { blockAt, blockCount, blockKey, contentKeyOf, rangeOfBlock } from './blocks.ts';
import type { BlockCache } from './cache.ts';
import type { Upstream } from './upstream.ts';

/** Blocks that are fetched for a client that reads one range after the other: enough to hide a round trip. */
const READ_AHEAD_BLOCKS = 2;

/** Runs for which nobody waits yet, of all readers together. */
const AHEAD_RUNS_MAX = 4;

/** How far from the last range's end the next may begin and still follow it: clients skip, and ask out of order. */
const SEQUENCE_GAP_BYTES = 1024 * 1024;

/** Files whose last read range is remembered. */
const SEQUENCES_MAX = 1000;

/** Read from the disk at a time: the first byte should not wait for a whole block. */
export const CACHED_READ_BYTES = 1024 * 1024;

/**
 * Bytes of files by blocks: from the cache, from a block that is on its way for another reader, or from the
 * service. No block is fetched twice at a time.
 */
export class BlockSource implements RunKeeper {
  readonly #flights = new Map<string, BlockFlight>();
  readonly #runs = new Set<BlockRun>();
  readonly #lastRanges = new LRUCache<string, ByteRange>({ max: SEQUENCES_MAX });
  #aheadCount = 0;

  constructor(
    private readonly upstream: Upstream,
    private readonly cache: BlockCache,
  ) {}

  /** The bytes of `range`, as they come. When `signal` is aborted, what only this reader wanted is aborted too. */
  async *read(
    file: FileEntry,
    range: ByteRange,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = new Held();
    const lastIndex = blockAt(range.end - 1);
    const isSequential = this.#follows(file, range);
    let position = range.start;
    try {
      while (position < range.end) {
        const index = blockAt(position);
        if (isSequential && index === lastIndex && !reader.isAhead) this.#readAhead(file, index + 1, reader);
        const block = rangeOfBlock(file, index);
        const to = Math.min(block.end, range.end);
        const cached = await this.#cached(file, index, position, to);
        if (cached) {
          position += cached.length;
          yield cached;
          continue;
        }
        const flight = this.#flight(file, { first: index, end: lastIndex + 1 });
        reader.follow(flight.run);
        while (position < to) {
          const piece = flight.available(position - block.start, to - block.start);
          position += piece.length;
          if (piece.length > 0) yield piece;
          else await flight.change(signal);
        }
      }
    } finally {
      this.#lastRanges.set(contentKeyOf(file), { start: range.start, end: position });
      reader.leave(position >= range.end && !signal.aborted);
    }
  }

  started(flight: BlockFlight, run: BlockRun): void {
    this.#flights.set(flightKey(run.file, flight.index), flight);
  }

  landed(flight: BlockFlight, run: BlockRun, complete: boolean): void {
    this.#flights.delete(flightKey(run.file, flight.index));
    if (complete) this.cache.keep(blockKey(run.file, flight.index), flight.bytes);
  }

  closed(run: BlockRun): void {
    this.#runs.delete(run);
    if (run.ahead) this.#aheadCount--;
  }

  hasBlock(file: FileEntry, index: number): boolean {
    return this.#flights.has(flightKey(file, index)) || this.cache.has(blockKey(file, index));
  }

  async #cached(file: FileEntry, index: number, from: number, to: number) {
    const key = blockKey(file, index);
    if (this.#flights.has(flightKey(file, index)) || !this.cache.has(key)) return undefined;
    const { start } = rangeOfBlock(file, index);
    return await this.cache.read(key, from - start, Math.min(to, from + CACHED_READ_BYTES) - start);
  }

  /** The flight of the first block of `span`: one under way, the next of a run, or a new run's. */
  #flight(file: FileEntry, span: BlockSpan): BlockFlight {
    const flight = this.#flights.get(flightKey(file, span.first));
    if (flight) return flight;
    const key = contentKeyOf(file);
    for (const run of this.#runs) if (run.isBefore(key, span.first)) return run.next();
    return this.#start(file, span, false).next();
  }

  #start(file: FileEntry, span: BlockSpan, ahead: boolean): BlockRun {
    let end = span.first + 1;
    while (end < span.end && !this.hasBlock(file, end)) end++;
    const run = new BlockRun(this.upstream, this, file, { first: span.first, end }, ahead);
    this.#runs.add(run);
    if (ahead) this.#aheadCount++;
    return run;
  }

  #readAhead(file: FileEntry, from: number, reader: Held): void {
    const end = Math.min(from + READ_AHEAD_BLOCKS, blockCount(file.sizeBytes));
    let first = from;
    while (first < end && this.hasBlock(file, first)) first++;
    if (first >= end || this.#aheadCount >= AHEAD_RUNS_MAX) return;
    const run = this.#start(file, { first, end }, true);
    reader.sendAhead(run);
    run.next();
  }

  #follows(file: FileEntry, { start }: ByteRange): boolean {
    const last = this.#lastRanges.get(contentKeyOf(file));
    return last !== undefined && start > last.start && Math.abs(start - last.end) <= SEQUENCE_GAP_BYTES;
  }
}

/** The runs that one reader holds: the one that it reads, and the one ahead of it. */
class Held {
  #current: BlockRun | undefined;
  #ahead: BlockRun | undefined;

  get isAhead(): boolean {
    return this.#ahead !== undefined;
  }

  follow(run: BlockRun): void {
    if (run === this.#current) return;
    run.hold();
    this.#current?.leave(true);
    this.#current = run;
  }

  sendAhead(run: BlockRun): void {
    run.hold();
    this.#ahead = run;
  }

  leave(isContent: boolean): void {
    this.#current?.leave(isContent);
    this.#ahead?.leave(isContent);
  }
}

function flightKey(file: FileEntry, index: number): string {
  return `${index} ${contentKeyOf(file)}`;
}
