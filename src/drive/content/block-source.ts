import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES } from '../../util/content-hash.ts';
import { smallest } from '../../util/extremes.ts';
import { createLru } from '../../util/lru.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError } from '../errors.ts';
import { BlockBuffers } from './block-buffers.ts';
import type { BlockCache } from './block-cache.ts';
import { blockAt, blockCount, blockKey, contentKeyOf, rangeOfBlock } from './blocks.ts';
import type { CachedContentCheck } from './cached-content-check.ts';
import { CachedSpans } from './cached-spans.ts';
import { type BlockFetch, DownloadRun, type RunOwner } from './download-run.ts';
import { Parallelism } from './parallelism.ts';
import type { DownloadDeps } from './resuming-download.ts';

/** Blocks fetched ahead for a client that reads one range after the other: enough to hide a round trip. */
const READ_AHEAD_BLOCKS = 2;

/** Maximum number of runs ahead of all readers together. */
const AHEAD_RUNS_MAX = 4;

/** Maximum number of blocks reserved for readers with several downloads, of all readers together: 24 MiB. */
const RESERVED_MAX = 6;

/**
 * Maximum distance of a range from the end of the one before, for read-ahead: clients skip, and request out of order.
 */
const SEQUENCE_GAP_BYTES = 1024 * 1024;

/** Number of files whose last range is remembered. */
const SEQUENCES_MAX = 1000;

/** Blocks of one range that enter the cache: more of them would evict files that are read in parts again and again. */
const KEPT_BLOCKS_MAX = 16;

/** Within this distance of a block's start, the block is fetched from its start; the first of a file whole. */
const LEAD_BYTES_MAX = 256 * 1024;

/** Bytes fetched for a short range that follows no other: a client that jumps seldom reads on. */
const JUMP_BYTES = 512 * 1024;

/** Multiple at which other fetches begin: a client that reads backwards or in odd steps requests nearby bytes next. */
const LEAD_UNIT_BYTES = 64 * 1024;

/**
 * Reads files block by block: from the cache, from the fetch of another reader, or from the service. No part of a block
 * is fetched twice at a time. A block that is read in order costs one call. Elsewhere the fetch begins at the first byte
 * requested, so that this byte comes after one round trip, and ends soon; what is missing around it is fetched when it is
 * requested.
 */
export class BlockSource implements RunOwner {
  readonly buffers = new BlockBuffers();
  /** The fetches under way, by `fetchKey`: most often one of the whole block. */
  readonly #fetches = new Map<string, readonly BlockFetch[]>();
  readonly #runs = new Set<DownloadRun>();
  readonly #lastRanges = createLru<ByteRange>(SEQUENCES_MAX);
  #aheadCount = 0;
  #reservedCount = 0;

  constructor(
    private readonly deps: DownloadDeps,
    private readonly cache: BlockCache,
    private readonly check: CachedContentCheck,
  ) {}

  /**
   * Reads the bytes of `range` as they come; each piece is valid until the next one is asked for. When `signal` is
   * aborted, downloads without other readers are aborted too. The first blocks enter the cache, or all blocks of a whole
   * file for which there is room. Throws `FileError` `broken` when a checked file cannot be checked any more.
   */
  async *read(
    file: FileEntry,
    range: ByteRange,
    signal: AbortSignal,
    isWhole = false,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    // The caller relies on the check of each block.
    const mustCheck = isWhole && this.check.isProved(file);
    const isCheckedWhileRead = isWhole && file.contentHash !== undefined;
    if (!isCheckedWhileRead) await this.check.forgetUnproven(file);
    const retained = new RetainedFetches();
    const cached = new CachedSpans(this.cache, this.buffers, file, range.end);
    const parallelism = new Parallelism(this.deps.clock);
    let keptEnd = isWhole ? this.#wholeKeptEnd(file) : blockAt(range.start) + KEPT_BLOCKS_MAX;
    const lastIndex = blockAt(range.end - 1);
    const isSequential = this.#follows(file, range);
    let position = range.start;
    try {
      while (position < range.end) {
        const index = blockAt(position);
        if (mustCheck) this.#requireChecked(file, index, cached);
        if (isSequential && index === lastIndex && !retained.isAhead)
          this.#readAhead(file, index + 1, retained);
        const isFetched =
          retained.reserved(index) || this.#fetchWith(file, index, position - index * BLOCK_BYTES, mustCheck);
        const span = isFetched ? undefined : await cached.take(position);
        if (span) {
          position += span.bytes.length;
          try {
            yield span.bytes;
          } finally {
            span.release();
          }
          continue;
        }
        parallelism.adjust();
        if (isWhole && index < keptEnd) await this.cache.room(signal);
        const { downloads } = parallelism;
        const isJump = !isSequential && !isWhole && range.start > LEAD_BYTES_MAX;
        const fetch = this.#next(file, position, range.end, retained, { downloads, mustCheck, isJump });
        if (mustCheck && !fetch.isChecked) throw uncheckable(file);
        fetch.isWanted ||= index < keptEnd;
        this.#reserve(file, index + 1, { lastIndex, keptEnd, downloads }, retained);
        const { start } = rangeOfBlock(file, index);
        const to = Math.min(start + fetch.end, range.end);
        while (position < to) {
          const piece = fetch.available(position - start, to - start);
          position += piece.length;
          parallelism.received(piece.length);
          if (piece.length > 0) yield piece;
          else await parallelism.waitFor(fetch.change(signal));
        }
        // Each gap would cost a call when the file is read again.
        if (fetch.isRefused && isWhole) keptEnd = index;
      }
    } finally {
      this.#lastRanges.set(contentKeyOf(file), { start: range.start, end: position });
      this.#reservedCount -= retained.reservedCount;
      cached.close();
      retained.release(position >= range.end && !signal.aborted);
      // A whole read has checked the file while reading it.
      if (!isWhole) void this.check.start(file);
    }
  }

  fetchStarted(fetch: BlockFetch): void {
    const key = fetchKey(fetch.run.file, fetch.index);
    this.#fetches.set(key, [...(this.#fetches.get(key) ?? []), fetch]);
  }

  fetchEnded(fetch: BlockFetch, complete: boolean): void {
    const { run, index, buffer, start } = fetch;
    const key = fetchKey(run.file, index);
    const others = this.#fetches.get(key)?.filter((other) => other !== fetch) ?? [];
    if (others.length > 0) this.#fetches.set(key, others);
    else this.#fetches.delete(key);
    if (!complete || !(fetch.isWanted || run.keepsAll)) return;
    if (!fetch.isChecked) this.check.uncheckedBlockAdded(run.file, index);
    else if (this.check.isUnchecked(run.file, index)) {
      this.cache.forget(blockKey(run.file, index));
      this.check.checkedBlockAdded(run.file, index);
    }
    const lasting = buffer.isPooled ? { buffer } : {};
    fetch.isRefused = !this.cache.keep(blockKey(run.file, index), buffer.bytes, { from: start, ...lasting });
  }

  runEnded(run: DownloadRun): void {
    this.#runs.delete(run);
    if (run.ahead) this.#aheadCount--;
  }

  checkOfBlock(file: FileEntry, index: number): ((sha256: Buffer) => boolean) | undefined {
    return this.check.ofBlock(file, index);
  }

  hasBlock(file: FileEntry, index: number): boolean {
    return this.#fetches.has(fetchKey(file, index)) || this.cache.has(blockKey(file, index));
  }

  /** Drops cached bytes of a block that nobody has checked, so that a whole read downloads them again. */
  #requireChecked(file: FileEntry, index: number, cached: CachedSpans): void {
    if (this.check.isUnchecked(file, index)) {
      this.cache.forget(blockKey(file, index));
      cached.close();
    }
    if (!this.check.isProved(file)) throw uncheckable(file);
  }

  #fetchWith(file: FileEntry, index: number, at: number, mustCheck: boolean): BlockFetch | undefined {
    const fetches = this.#fetches.get(fetchKey(file, index));
    return fetches?.find((fetch) => fetch.has(at) && (fetch.isChecked || !mustCheck));
  }

  /** Returns the end of the blocks that enter the cache: all or none, as each is worth the same. */
  #wholeKeptEnd(file: FileEntry): number {
    const count = blockCount(file.sizeBytes);
    return count <= KEPT_BLOCKS_MAX || this.cache.hasRoomFor(file.sizeBytes) ? count : 0;
  }

  /** Returns, and retains, the fetch with the byte at `position`: a reserved one, or as found by `#fetch`. */
  #next(
    file: FileEntry,
    position: number,
    end: number,
    retained: RetainedFetches,
    { downloads, mustCheck, isJump }: { downloads: number; mustCheck: boolean; isJump: boolean },
  ): BlockFetch {
    const index = blockAt(position);
    const reserved = retained.reserved(index);
    if (reserved) this.#reservedCount--;
    // Several downloads fetch one block each, so that they can be started and ended one by one.
    const runEnd = downloads > 1 ? Math.min(end, rangeOfBlock(file, index).end) : end;
    const fetch = reserved ?? this.#fetch(file, position, runEnd, { mustCheck, isJump });
    retained.follow(fetch);
    return fetch;
  }

  /** Starts downloads of the blocks from `from` on, until there are `downloads` of them. */
  #reserve(
    file: FileEntry,
    from: number,
    { lastIndex, keptEnd, downloads }: { lastIndex: number; keptEnd: number; downloads: number },
    retained: RetainedFetches,
  ): void {
    for (let index = from; index < from + downloads - 1 && index <= lastIndex; index++) {
      if (this.#reservedCount >= RESERVED_MAX) return;
      if (retained.reserved(index) || this.hasBlock(file, index)) continue;
      const fetch = this.#start(file, rangeOfBlock(file, index), false).next();
      fetch.isWanted = index < keptEnd;
      retained.reserve(fetch);
      this.#reservedCount++;
    }
  }

  /** Returns the fetch with the byte at `position`: one under way, the next of a run, or the first of a new run. */
  #fetch(
    file: FileEntry,
    position: number,
    end: number,
    { mustCheck, isJump }: { mustCheck: boolean; isJump: boolean },
  ): BlockFetch {
    const index = blockAt(position);
    const block = rangeOfBlock(file, index);
    const fetch = this.#fetchWith(file, index, position - block.start, mustCheck);
    if (fetch) return fetch;
    const key = contentKeyOf(file);
    for (const run of this.#runs) if (run.isAt(key, position)) return run.next();
    // Only a whole block can be checked.
    if (mustCheck)
      return this.#start(file, { start: block.start, end: this.#runEnd(file, index + 1, end) }, false).next();
    const partEnd = this.#missingUpTo(file, index, position - block.start);
    const start = block.start + fetchOffset(file, position - block.start);
    const jumpEnd = start + JUMP_BYTES;
    if (isJump && end <= jumpEnd && jumpEnd < partEnd && file.sizeBytes > BLOCK_BYTES)
      return this.#start(file, { start, end: jumpEnd }, false).next();
    if (partEnd < block.end) return this.#start(file, { start: block.start, end: partEnd }, false).next();
    return this.#start(file, { start, end: this.#runEnd(file, index + 1, end) }, false).next();
  }

  /** Returns the end of the part of a block that is missing at `at`: the block's end, or the start of a later part. */
  #missingUpTo(file: FileEntry, index: number, at: number): number {
    const block = rangeOfBlock(file, index);
    const fetched = this.#fetches.get(fetchKey(file, index))?.map(({ start }) => start) ?? [];
    const cached = this.cache.partAfter(blockKey(file, index), at) ?? block.end;
    return (
      block.start + smallest([cached, block.end - block.start, ...fetched.filter((start) => start > at)])
    );
  }

  /** Returns the end of the missing blocks from `index` on that hold bytes before `end`. */
  #runEnd(file: FileEntry, index: number, end: number): number {
    let next = index;
    while (next * BLOCK_BYTES < end && !this.hasBlock(file, next)) next++;
    return rangeOfBlock(file, next - 1).end;
  }

  #start(file: FileEntry, range: ByteRange, ahead: boolean): DownloadRun {
    const run = new DownloadRun(this.deps, this, file, range, ahead);
    this.#runs.add(run);
    if (ahead) this.#aheadCount++;
    return run;
  }

  #readAhead(file: FileEntry, from: number, retained: RetainedFetches): void {
    const end = Math.min(from + READ_AHEAD_BLOCKS, blockCount(file.sizeBytes));
    let first = from;
    while (first < end && this.hasBlock(file, first)) first++;
    if (first >= end || this.#aheadCount >= AHEAD_RUNS_MAX) return;
    const { start } = rangeOfBlock(file, first);
    const run = this.#start(file, { start, end: this.#runEnd(file, first + 1, end * BLOCK_BYTES) }, true);
    run.keepsAll = true;
    retained.setAhead(run);
    run.next();
  }

  #follows(file: FileEntry, { start }: ByteRange): boolean {
    const last = this.#lastRanges.get(contentKeyOf(file));
    return last !== undefined && start > last.start && Math.abs(start - last.end) <= SEQUENCE_GAP_BYTES;
  }
}

/** So many other files were read meanwhile that what was known of this one is forgotten. */
function uncheckable(file: FileEntry): FileError {
  return new FileError('broken', `${file.name} cannot be checked any more; read it again`);
}

/** Returns the offset in a block at which a fetch for the byte at `at` begins. */
function fetchOffset(file: FileEntry, at: number): number {
  // A file of one block is fetched whole, so that its hash can be checked.
  if (at <= LEAD_BYTES_MAX || file.sizeBytes <= BLOCK_BYTES) return 0;
  return at - (at % LEAD_UNIT_BYTES);
}

function fetchKey(file: FileEntry, index: number): string {
  return `${index} ${contentKeyOf(file)}`;
}

/**
 * The objects that one reader retains: the fetch that it reads and its run, the run ahead of it, and the fetches it
 * reads next.
 */
class RetainedFetches {
  /** Fetches by block index; each is the only fetch of its run. */
  readonly #next = new Map<number, BlockFetch>();
  #current: BlockFetch | undefined;
  #run: DownloadRun | undefined;
  #ahead: DownloadRun | undefined;

  get isAhead(): boolean {
    return this.#ahead !== undefined;
  }

  /** Retains `fetch` in place of the one that was read before. */
  follow(fetch: BlockFetch): void {
    fetch.retain();
    this.#current?.release();
    this.#current = fetch;
    if (fetch.run !== this.#run) {
      fetch.run.retain();
      this.#run?.release(true);
      this.#run = fetch.run;
    }
    if (this.#next.get(fetch.index) === fetch) this.#cancel(fetch, true);
  }

  /** Retains a fetch that will be followed later. */
  reserve(fetch: BlockFetch): void {
    fetch.retain();
    fetch.run.retain();
    this.#next.set(fetch.index, fetch);
  }

  reserved(index: number): BlockFetch | undefined {
    return this.#next.get(index);
  }

  get reservedCount(): number {
    return this.#next.size;
  }

  setAhead(run: DownloadRun): void {
    run.retain();
    this.#ahead = run;
  }

  /** Releases all; `isSatisfied` as for `DownloadRun.release`. */
  release(isSatisfied: boolean): void {
    for (const fetch of [...this.#next.values()]) this.#cancel(fetch, isSatisfied);
    this.#run?.release(isSatisfied);
    this.#ahead?.release(isSatisfied);
    this.#current?.release();
  }

  #cancel(fetch: BlockFetch, isSatisfied: boolean): void {
    this.#next.delete(fetch.index);
    fetch.run.release(isSatisfied);
    fetch.release();
  }
}
