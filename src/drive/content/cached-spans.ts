import type { FileEntry } from '../../api/remote.ts';
import type { BlockBuffers } from './block-buffers.ts';
import type { BlockCache } from './block-cache.ts';
import { blockAt, blockKey, rangeOfBlock } from './blocks.ts';

/** Read from the disk at first, as the first byte should not wait for a whole block, and when many readers do. */
const SHORT_SPAN_BYTES = 512 * 1024;

/** Given out at a time: what a reader gets is its own, as a buffer is used again; small enough to be cheap to make. */
const PIECE_BYTES = 64 * 1024;

/** Bytes of one block, in pieces that are whoever gets them's own. */
export interface Span {
  readonly sizeBytes: number;
  pieces(): Iterable<Uint8Array>;
  release(): void;
}

/**
 * What one reader gets of a file's bytes up to `end` from the cache: the next span is read from the disk while the
 * one before it is given out. `release` each span that was taken, and `close` at the end.
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

  /** The bytes at `position` and after it; `undefined` when they are not there. */
  async take(position: number): Promise<Span | undefined> {
    const ahead = this.#next?.position === position ? await this.#next.span : undefined;
    if (ahead) this.#next = undefined;
    else this.close();
    // Missing a while ago: it may have come meanwhile.
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
    const buffer = this.buffers.lend(block.end - block.start);
    const bytes = await this.cache.read(key, at, to - block.start, buffer.bytes);
    if (!bytes) return void buffer.release();
    return { sizeBytes: bytes.length, pieces: () => piecesOf(bytes), release: () => buffer.release() };
  }
}

function* piecesOf(bytes: Uint8Array): Iterable<Uint8Array> {
  for (let start = 0; start < bytes.length; start += PIECE_BYTES)
    yield Buffer.from(bytes.subarray(start, start + PIECE_BYTES));
}
