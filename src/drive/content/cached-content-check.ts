import { LRUCache } from 'lru-cache';
import type { FileEntry } from '../../api/remote.ts';
import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import { createLru } from '../../util/lru.ts';
import type { BlockCache } from './block-cache.ts';
import { blockCount, blockKey, contentKeyOf, rangeOfBlock } from './blocks.ts';

/** Maximum number of contents not checked yet. */
const CONTENTS_MAX = 10_000;

/** Maximum number of blocks whose SHA-256 is known: those of files of 200 GiB, in 5 MB of memory. */
const DIGESTS_MAX = 50_000;

/** Maximum size of a file that is read back for the check, in bytes. */
const CHECKED_BYTES_MAX = 1024 ** 3;

/**
 * How long unverifiable blocks are served from the cache, in ms: long enough for a film that is watched with pauses,
 * short enough that damage does not last.
 */
const UNPROVEN_MS_MAX = 3_600_000;

/** Blocks that are dropped in one turn of the event loop: a few milliseconds. */
const FORGOTTEN_PER_TURN = 500;

/** Bytes that are hashed in one turn of the event loop: about a millisecond. */
const STEP_BYTES = 1024 * 1024;

/**
 * Detects cached blocks that were damaged on their way from the service; the checksums of the blocks' files detect
 * damage by the disk. The service gives hashes of whole files only, so cached blocks are checked when all blocks of
 * their file are cached. When the hash is wrong, all of them are dropped, because any may be the damaged one. When it is
 * right, the hash of each block is right too, and from then on each block is checked when it arrives. Blocks that cannot
 * be checked, because some are missing or the file is too large, are downloaded again after an hour.
 */
export class CachedContentCheck {
  /** By content key. */
  readonly #proofs = new LRUCache<string, Proof>({
    maxSize: DIGESTS_MAX,
    sizeCalculation: ({ digests }) => digests.length,
  });
  /** Time since which blocks are in the cache unchecked; for those of an earlier run, since they were first read. */
  readonly #unproven = createLru<Moment>(CONTENTS_MAX);
  #running: Running | undefined;
  readonly #wholeReads = new Set<WholeRead>();

  constructor(
    private readonly cache: BlockCache,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Begins a read of the whole file, which may prove it. The caller ends it with `endWhole`. */
  beginWhole(file: FileEntry): WholeRead {
    const read = { key: contentKeyOf(file), index: 0, missed: new Set<number>() };
    this.#wholeReads.add(read);
    return read;
  }

  endWhole(read: WholeRead): void {
    this.#wholeReads.delete(read);
  }

  /**
   * Records that the file was read whole, with the right content hash. `digests` are the SHA-256 of its blocks; of those
   * that are `missed`, other bytes are cached.
   */
  passed(file: FileEntry, digests: readonly Buffer[], missed: ReadonlySet<number> = new Set()): void {
    const key = contentKeyOf(file);
    this.#proofs.set(key, { digests, unchecked: new Set(missed) });
    this.#unproven.delete(key);
  }

  /** Whether each block of the file is checked when it arrives, and the cached ones are right unless `isUnchecked`. */
  isProved(file: FileEntry): boolean {
    return this.#proofs.has(contentKeyOf(file));
  }

  /** Whether a part of this block of a proved file is cached that arrived without a check. */
  isUnchecked(file: FileEntry, index: number): boolean {
    return this.#proofs.get(contentKeyOf(file))?.unchecked.has(index) ?? false;
  }

  /** Returns a function that checks a block that arrives by its SHA-256; `undefined` when that is not possible yet. */
  ofBlock(file: FileEntry, index: number): ((sha256: Buffer) => boolean) | undefined {
    if (isCheckedOnArrival(file))
      return (sha256) => new ContentHasher().addBlock(sha256).digest() === file.contentHash;
    const expected = this.#proofs.get(contentKeyOf(file))?.digests[index];
    return expected && ((sha256) => sha256.equals(expected));
  }

  /** Records that a checked block takes the place of all that was cached of it. */
  checkedBlockAdded(file: FileEntry, index: number): void {
    this.#proofs.get(contentKeyOf(file))?.unchecked.delete(index);
  }

  /** Records that a block, or a part of one, enters the cache without a check. */
  uncheckedBlockAdded(file: FileEntry, index: number): void {
    const key = contentKeyOf(file);
    this.#proofs.get(key)?.unchecked.add(index);
    if (this.#running?.key === key) this.#running.isDisturbed = true;
    // What the read itself downloads is added while it is at that block, or before.
    for (const read of this.#wholeReads) if (read.key === key && index < read.index) read.missed.add(index);
    if (!this.#unproven.has(key)) this.#unproven.set(key, momentNow(this.clock));
  }

  /**
   * Drops the blocks of `file` if they have been unchecked for too long. Must be called before they are read unchecked.
   */
  async forgetUnproven(file: FileEntry): Promise<void> {
    const key = contentKeyOf(file);
    const proof = this.#proofs.get(key);
    if (isCheckedOnArrival(file) || proof?.unchecked.size === 0) return;
    const since = this.#unproven.get(key);
    if (!since) return void this.#unproven.set(key, momentNow(this.clock));
    if (ageMs(this.clock, since) < UNPROVEN_MS_MAX) return;
    this.#unproven.delete(key);
    await this.#forget(file, proof?.unchecked ?? allBlocksOf(file));
    proof?.unchecked.clear();
  }

  /**
   * Checks `file` if that is possible and has not been done. Only one file is checked at a time: returns `undefined`
   * while another one is. Never rejects.
   */
  start(file: FileEntry): Promise<void> | undefined {
    const key = contentKeyOf(file);
    if (this.#running) return this.#running.key === key ? this.#running.end : undefined;
    if (!this.#canCheck(file, key)) return undefined;
    const running: Running = { key, isDisturbed: false, end: Promise.resolve() };
    this.#running = running;
    running.end = this.#check(file, running)
      .catch((error) => this.log.error('cannot check the cached blocks of a file', { reason: String(error) }))
      .finally(() => {
        this.#running = undefined;
      });
    return running.end;
  }

  #canCheck(file: FileEntry, key: string): boolean {
    const { contentHash, sizeBytes } = file;
    if (contentHash === undefined || isCheckedOnArrival(file) || sizeBytes > CHECKED_BYTES_MAX) return false;
    if (this.#proofs.has(key)) return false;
    for (const index of allBlocksOf(file)) if (!this.cache.has(blockKey(file, index))) return false;
    return true;
  }

  async #check(file: FileEntry, running: Running): Promise<void> {
    const digests: Buffer[] = [];
    const hasher = new ContentHasher((sha256) => digests.push(sha256));
    const into = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    const count = blockCount(file.sizeBytes);
    for (let index = 0; index < count; index++) {
      const { start, end } = rangeOfBlock(file, index);
      const bytes = await this.cache.read(
        blockKey(file, index),
        0,
        end - start,
        into.subarray(0, end - start),
      );
      if (bytes?.length !== end - start) return;
      for (let at = 0; at < bytes.length; at += STEP_BYTES) {
        hasher.update(bytes.subarray(at, at + STEP_BYTES));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    if (hasher.digest() === file.contentHash) {
      if (!running.isDisturbed) this.passed(file, digests);
      return;
    }
    await this.#forget(file, allBlocksOf(file));
    this.log.warn('cached blocks of a file were damaged and are downloaded again', {
      rev: file.rev,
      blocks: count,
    });
  }

  async #forget(file: FileEntry, blocks: Iterable<number>): Promise<void> {
    let count = 0;
    for (const index of blocks) {
      this.cache.forget(blockKey(file, index));
      if (++count % FORGOTTEN_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** Shows that a file was once seen with its content hash. */
interface Proof {
  /** The SHA-256 of each block. */
  readonly digests: readonly Buffer[];
  /** Indexes of blocks that have since arrived without a check, whole or in part. */
  readonly unchecked: Set<number>;
}

/** A read of a whole file whose content hash is compared at the end. */
export interface WholeRead {
  readonly key: string;
  /** Index of the block that is being read. */
  index: number;
  /** Indexes of blocks that this read had passed when unchecked bytes of them were cached. */
  readonly missed: Set<number>;
}

/** A check of the cached blocks of one file. */
interface Running {
  readonly key: string;
  /** Whether an unchecked block has arrived meanwhile. */
  isDisturbed: boolean;
  end: Promise<void>;
}

function* allBlocksOf({ sizeBytes }: FileEntry): Iterable<number> {
  for (let index = 0; index < blockCount(sizeBytes); index++) yield index;
}

/** A file of one block enters the cache only with its content hash. */
function isCheckedOnArrival({ contentHash, sizeBytes }: FileEntry): boolean {
  return contentHash !== undefined && sizeBytes <= BLOCK_BYTES;
}
