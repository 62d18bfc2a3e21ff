import { BLOCK_BYTES } from '../../../util/content-hash.ts';

/** Maximum number of idle buffers. One download uses two: for the block that is sent, and for the next one. */
const IDLE_MAX = 2;

/**
 * Reusable buffers of one block each. A new buffer for each block would pile up, because the garbage collector waits
 * for more than 32 MiB of them.
 */
export class BlockBuffers {
  readonly #idle: Buffer[] = [];

  take(): Buffer {
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  /** Returns a buffer for reuse. The caller must not read or write it afterwards. */
  giveBack(buffer: Buffer): void {
    if (this.#idle.length < IDLE_MAX) this.#idle.push(buffer);
  }
}
