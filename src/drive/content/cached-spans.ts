import type { FileEntry } from '../../api/remote.ts';
import type { BlockBuffers } from './block-buffers.ts';
import type { BlockCache } from './block-cache.ts';
import { blockAt, blockKey, rangeOfBlock } from './blocks.ts';

/**
 * Size of the first read from the disk, so that the first byte comes soon, and of all reads while the buffers are busy.
 */
const SHORT_SPAN_BYTES = 512 * 1024;

/** Bytes of one block, valid until they are released. */
export interface Span {
  readonly bytes: Uint8Array;
  release(): void;
}

/**
 * Reads a file's bytes up to `end` from the cache for one reader: the next span is read from the disk while the reader
 * takes the one before it. Each span taken must be released, and `close` called at the end.
 */
export class CachedSpans {
  #next: { readonly position: number; readonly span: Promise<Span | undefined> } | undefined;
  #isFirst = true;

  constructor(
    private readonly cache: BlockCache,
    private readonly buffers: BlockBuffers,
    private readonly file: FileEntry,
    private readonly end: number,
  ) {}

  /** Returns the bytes at `position` and after it; `undefined` when they are not cached. */
  async take(position: number): Promise<Span | undefined> {
    const ahead = this.#next?.position === position ? await this.#next.span : undefined;
    if (ahead) this.#next = undefined;
    else this.close();
    // Bytes that were missing when they were read ahead may have come meanwhile.
    const span = ahead ?? (await this.#read(position));
    if (!span) return undefined;
    this.#isFirst = false;
    const after = position + span.bytes.length;
    if (after < this.end && !this.buffers.isBusy) this.#next = { position: after, span: this.#read(after) };
    return span;
  }

  close(): void {
    void this.#next?.span.then((span) => span?.release());
    this.#next = undefined;
  }

  async #read(position: number): Promise<Span | undefined> {
    const key = blockKey(this.file, blockAt(position));
    const block = rangeOfBlock(this.file, blockAt(position));
    const at = position - block.start;
    if (!this.cache.has(key, at)) return undefined;
    const isShort = this.#isFirst || this.buffers.isBusy;
    const to = Math.min(this.end, block.end, isShort ? position + SHORT_SPAN_BYTES : block.end);
    if (to - position <= SHORT_SPAN_BYTES) {
      const bytes = await this.cache.read(key, at, to - block.start);
      return bytes && { bytes, release: () => {} };
    }
    const buffer = this.buffers.take(block.end - block.start);
    const bytes = await this.cache.read(key, at, to - block.start, buffer.bytes);
    if (!bytes) return void buffer.release();
    return { bytes, release: () => buffer.release() };
  }
}
