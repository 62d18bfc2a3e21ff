import { LRUCache } from 'lru-cache';
import type { FileEntry } from '../../api/remote.ts';
import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import type { BlockCache } from './block-cache.ts';
import { blockCount, blockKey, contentKeyOf, rangeOfBlock } from './blocks.ts';

/** Contents that are known to be right, and others that are not, at most. */
const CONTENTS_MAX = 10_000;

/** The largest file that is read back for the check. */
const CHECKED_BYTES_MAX = 1024 ** 3;

/**
 * How long blocks are served of whose file nothing says that they are right, in ms: a film that is watched with pauses
 * comes from the cache, and damage does not last.
 */
const UNPROVEN_MS_MAX = 3_600_000;

/** Blocks that are forgotten in one turn of the event loop: some milliseconds. */
const FORGOTTEN_PER_TURN = 500;

/** Hashed in one turn of the event loop: about a millisecond. */
const STEP_BYTES = 1024 * 1024;

/**
 * Keeps damage on the way from the service out of the block cache; what the disk does to a block its own checksums tell.
 * The service tells no hash of a single block, only one of the whole file. So cached blocks are checked as soon as all of
 * their file are there, and of a file that is wrong all are forgotten, for any of them may be the damaged one. Blocks that
 * cannot be checked, because some are missing or the file is too large, are fetched again after an hour.
 */
export class CachedContentCheck {
  readonly #right = new LRUCache<string, true>({ max: CONTENTS_MAX });
  /** Since when there are blocks in the cache that were not checked; of those of an earlier run, since they were first read. */
  readonly #unproven = new LRUCache<string, Moment>({ max: CONTENTS_MAX });
  #running: { readonly key: string; readonly end: Promise<void> } | undefined;

  constructor(
    private readonly cache: BlockCache,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** The file was read whole, and had its content hash. */
  passed(file: FileEntry): void {
    this.#proved(contentKeyOf(file));
  }

  /** Another block of the file enters the cache. */
  blockCame(file: FileEntry): void {
    const key = contentKeyOf(file);
    this.#right.delete(key);
    if (!this.#unproven.has(key)) this.#unproven.set(key, momentNow(this.clock));
  }

  /** Forgets the blocks of `file` when they have gone unchecked for too long. To be called before they are read unchecked. */
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
   * Checks `file` if that is possible and has not been done. One file at a time: `undefined` when another one is being
   * checked. Never rejects.
   */
  start(file: FileEntry): Promise<void> | undefined {
    const key = contentKeyOf(file);
    if (this.#running) return this.#running.key === key ? this.#running.end : undefined;
    if (!this.#isOpen(file, key)) return undefined;
    const end = this.#check(file, key)
      .catch((error) => this.log.error('the block cache could not be checked', { reason: String(error) }))
      .finally(() => {
        this.#running = undefined;
      });
    this.#running = { key, end };
    return end;
  }

  #isOpen(file: FileEntry, key: string): boolean {
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
    // A block that came meanwhile was not looked at.
    const isRight = hasher.digest() === file.contentHash;
    if (isRight && this.#right.has(key)) return this.#proved(key);
    if (isRight) return;
    this.#right.delete(key);
    await this.#forget(file);
    this.log.warn('a download was damaged: its blocks are fetched again', { rev: file.rev, blocks: count });
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
