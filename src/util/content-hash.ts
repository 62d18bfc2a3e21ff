import { createHash, type Hash } from 'node:crypto';

/** The service hashes content in blocks of 4 MiB, and so do its upload parts and our caches. */
export const BLOCK_BYTES = 4 * 1024 * 1024;

/**
 * The service's `content_hash` of a stream: SHA-256 over the SHA-256 of each 4 MiB block, in lower hex.
 */
export class ContentHasher {
  #outer = createHash('sha256');
  #block: Hash | undefined;
  #filledBytes = 0;

  /** `onBlock` gets the SHA-256 of each block as it is closed. */
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

  /** Adds a whole block (or the last, shorter one) whose SHA-256 is known. Only at a block boundary. */
  addBlock(sha256: Uint8Array): this {
    if (this.#filledBytes !== 0) throw new Error('a block hash can be added only at a block boundary');
    this.#outer.update(sha256);
    return this;
  }

  /** The hash of all that was added; ends the hasher. */
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

/** The `content_hash` of bytes in memory. */
export function contentHashOf(bytes: Uint8Array): string {
  return new ContentHasher().update(bytes).digest();
}
