import { createHash, type Hash } from 'node:crypto';

/** Size of the blocks that the service hashes, in bytes. Upload parts and the block cache use the same size. */
export const BLOCK_BYTES = 4 * 1024 * 1024;

/**
 * Computes the service's `content_hash` of a stream: the SHA-256 of the SHA-256 of each 4 MiB block, in lower-case hex.
 */
export class ContentHasher {
  #outer = createHash('sha256');
  #block: Hash | undefined;
  #filledBytes = 0;

  /** `onBlock` gets the SHA-256 of each complete block. */
  constructor(private readonly onBlock?: (sha256: Buffer) => void) {}

  update(chunk: Uint8Array): this {
    for (let offset = 0; offset < chunk.length; ) {
      const take = Math.min(BLOCK_BYTES - this.#filledBytes, chunk.length - offset);
      this.#block ??= createHash('sha256');
      this.#block.update(chunk.subarray(offset, offset + take));
      this.#filledBytes += take;
      offset += take;
      if (this.#filledBytes === BLOCK_BYTES) this.#closeBlock();
    }
    return this;
  }

  /** Adds a block whose SHA-256 is known; only the last one may be shorter. Throws except at a block boundary. */
  addBlock(sha256: Uint8Array): this {
    if (this.#filledBytes !== 0) throw new Error('a block hash can be added only at a block boundary');
    this.#outer.update(sha256);
    return this;
  }

  /** Returns the hash of everything added, and ends the hasher. */
  digest(): string {
    if (this.#block) this.#closeBlock();
    return this.#outer.digest('hex');
  }

  #closeBlock(): void {
    if (this.#block) {
      const sha256 = this.#block.digest();
      this.#outer.update(sha256);
      this.onBlock?.(sha256);
    }
    this.#block = undefined;
    this.#filledBytes = 0;
  }
}

/** Returns the `content_hash` of bytes in memory. */
export function contentHashOf(bytes: Uint8Array): string {
  return new ContentHasher().update(bytes).digest();
}
