import { BLOCK_BYTES } from '../../../util/content-hash.ts';

/** Kept for the next read: one download has two, the block that is sent and the one after it. */
const IDLE_MAX = 2;

/**
 * Buffers of one block each, for bytes that nobody needs once they are sent. Made anew for each block they would
 * pile up until the garbage collector comes, which waits for more than 32 MiB of them.
 */
export class BlockBuffers {
  readonly #idle: Buffer[] = [];

  take(): Buffer {
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  /** Takes back a buffer that nobody reads or fills any more. */
  giveBack(buffer: Buffer): void {
    if (this.#idle.length < IDLE_MAX) this.#idle.push(buffer);
  }
}
