import { LRUCache } from 'lru-cache';
import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import { blockCount, blockKey, contentKeyOf, rangeOfBlock } from './blocks.ts';
import type { BlockCache } from './cache.ts';

/** Contents that are known to be right, at most. */
const RIGHT_MAX = 10_000;

/** The largest file that is read back for the check. */
const CHECKED_BYTES_MAX = 1024 ** 3;

/** Hashed in one turn of the event loop: about a millisecond. */
const STEP_BYTES = 1024 * 1024;

/**
 * Checks the cached blocks of a file against its content hash as soon as all of them are in the cache: a single block
 * has no hash that the service tells. Of a file that is wrong all blocks are forgotten, for any of them may be the
 * damaged one.
 */
export class CachedContentCheck {
  readonly #right = new LRUCache<string, true>({ max: RIGHT_MAX });
  #running: { readonly key: string; readonly end: Promise<void> } | undefined;

  constructor(
    private readonly cache: BlockCache,
    private readonly log: Log,
  ) {}

  /** The file was read whole, and had its content hash. */
  passed(file: FileEntry): void {
    this.#right.set(contentKeyOf(file), true);
  }

  /** Another block of the file enters the cache. */
  blockCame(file: FileEntry): void {
    this.#right.delete(contentKeyOf(file));
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
    // A file of one block is checked before it enters the cache.
    if (contentHash === undefined || sizeBytes <= BLOCK_BYTES || sizeBytes > CHECKED_BYTES_MAX) return false;
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
    if (hasher.digest() === file.contentHash) return;
    this.#right.delete(key);
    for (let index = 0; index < count; index++) this.cache.forget(blockKey(file, index));
    this.log.warn('a download was damaged: its blocks are fetched again', { rev: file.rev, blocks: count });
  }
}
