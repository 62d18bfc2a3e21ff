import type { FileEntry } from '../../api/remote.ts';
import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import { createLru } from '../../util/lru.ts';
import type { BlockCache } from './block-cache.ts';
import { blockCount, blockKey, contentKeyOf, rangeOfBlock } from './blocks.ts';

/** Maximum number of contents known to be right, and of those not checked yet. */
const CONTENTS_MAX = 10_000;

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
 * their file are cached. When the hash is wrong, all of them are dropped, because any may be the damaged one. Blocks
 * that cannot be checked, because some are missing or the file is too large, are downloaded again after an hour.
 */
export class CachedContentCheck {
  readonly #right = createLru<true>(CONTENTS_MAX);
  /** Time since which blocks are in the cache unchecked; for those of an earlier run, since they were first read. */
  readonly #unproven = createLru<Moment>(CONTENTS_MAX);
  #running: { readonly key: string; readonly end: Promise<void> } | undefined;

  constructor(
    private readonly cache: BlockCache,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Records that the file was read whole, with the right content hash. */
  passed(file: FileEntry): void {
    this.#proved(contentKeyOf(file));
  }

  /** Records that another block of the file enters the cache. */
  blockAdded(file: FileEntry): void {
    const key = contentKeyOf(file);
    this.#right.delete(key);
    if (!this.#unproven.has(key)) this.#unproven.set(key, momentNow(this.clock));
  }

  /**
   * Drops the blocks of `file` if they have been unchecked for too long. Must be called before they are read unchecked.
   */
  async forgetUnproven(file: FileEntry): Promise<void> {
    const key = contentKeyOf(file);
    if (isCheckedOnArrival(file) || this.#right.has(key)) return;
    const since = this.#unproven.get(key);
    if (!since) return void this.#unproven.set(key, momentNow(this.clock));
    if (ageMs(this.clock, since) < UNPROVEN_MS_MAX) return;
    this.#unproven.delete(key);
    await this.#forget(file);
  }

  /**
   * Checks `file` if that is possible and has not been done. Only one file is checked at a time: returns `undefined`
   * while another one is. Never rejects.
   */
  start(file: FileEntry): Promise<void> | undefined {
    const key = contentKeyOf(file);
    if (this.#running) return this.#running.key === key ? this.#running.end : undefined;
    if (!this.#canCheck(file, key)) return undefined;
    const end = this.#check(file, key)
      .catch((error) => this.log.error('cannot check the cached blocks of a file', { reason: String(error) }))
      .finally(() => {
        this.#running = undefined;
      });
    this.#running = { key, end };
    return end;
  }

  #canCheck(file: FileEntry, key: string): boolean {
    const { contentHash, sizeBytes } = file;
    if (contentHash === undefined || isCheckedOnArrival(file) || sizeBytes > CHECKED_BYTES_MAX) return false;
    if (this.#right.has(key)) return false;
    for (let index = 0; index < blockCount(sizeBytes); index++)
      if (!this.cache.has(blockKey(file, index))) return false;
    return true;
  }

  async #check(file: FileEntry, key: string): Promise<void> {
    const hasher = new ContentHasher();
    const into = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    const count = blockCount(file.sizeBytes);
    this.#right.set(key, true);
    for (let index = 0; index < count; index++) {
      const { start, end } = rangeOfBlock(file, index);
      const bytes = await this.cache.read(
        blockKey(file, index),
        0,
        end - start,
        into.subarray(0, end - start),
      );
      if (bytes?.length !== end - start) return void this.#right.delete(key);
      for (let at = 0; at < bytes.length; at += STEP_BYTES) {
        hasher.update(bytes.subarray(at, at + STEP_BYTES));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    // `blockAdded` removes the mark when an unchecked block has arrived meanwhile.
    const isRight = hasher.digest() === file.contentHash;
    if (isRight && this.#right.has(key)) return this.#proved(key);
    if (isRight) return;
    this.#right.delete(key);
    await this.#forget(file);
    this.log.warn('cached blocks of a file were damaged and are downloaded again', {
      rev: file.rev,
      blocks: count,
    });
  }

  #proved(key: string): void {
    this.#right.set(key, true);
    this.#unproven.delete(key);
  }

  async #forget(file: FileEntry): Promise<void> {
    for (let index = 0; index < blockCount(file.sizeBytes); index++) {
      this.cache.forget(blockKey(file, index));
      if (index % FORGOTTEN_PER_TURN === FORGOTTEN_PER_TURN - 1)
        await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** A file of one block enters the cache only with its content hash. */
function isCheckedOnArrival({ contentHash, sizeBytes }: FileEntry): boolean {
  return contentHash !== undefined && sizeBytes <= BLOCK_BYTES;
}
