import type { FileEntry } from '../../api/remote.ts';
import type { BlockBuffers } from './block-buffers.ts';
import type { BlockCache } from './block-cache.ts';
import { blockAt, blockKey, rangeOfBlock } from './blocks.ts';

/**
 * Size of the first read from the disk, so that the first byte comes soon, and of all reads while the buffers are busy.
 */
const SHORT_SPAN_BYTES = 512 * 1024;

/** Size of a piece, in bytes: readers get copies because buffers are used again, and small copies are cheap to make. */
const PIECE_BYTES = 64 * 1024;

/** Bytes of one block. The pieces belong to the reader. */
export interface Span {
  readonly sizeBytes: number;
  pieces(): Iterable<Uint8Array>;
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
    const after = position + span.sizeBytes;
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
      return bytes && { sizeBytes: bytes.length, pieces: () => [bytes], release: () => {} };
    }
    const buffer = this.buffers.take(block.end - block.start);
    const bytes = await this.cache.read(key, at, to - block.start, buffer.bytes);
    if (!bytes) return void buffer.release();
    return { sizeBytes: bytes.length, pieces: () => piecesOf(bytes), release: () => buffer.release() };
  }
}

function* piecesOf(bytes: Uint8Array): Iterable<Uint8Array> {
  for (let start = 0; start < bytes.length; start += PIECE_BYTES)
    yield Buffer.from(bytes.subarray(start, start + PIECE_BYTES));
}
