import { BLOCK_BYTES } from '../../../util/content-hash.ts';

/**
 * Maximum number of idle buffers; as many as are in use, if these are more. One download uses two: for the block that is
 * sent, and for the next one.
 */
const IDLE_MAX = 2;

/** Buffers in use (16 MiB) from which on downloads read no block ahead. Each then waits for its next block. */
const BUSY_COUNT = 4;

/**
 * Reusable buffers of one block each. A new buffer for each block would pile up, because the garbage collector waits
 * for more than 32 MiB of them.
 */
export class BlockBuffers {
  readonly #idle: Buffer[] = [];
  readonly #inUse = new Set<Buffer>();

  /** Whether downloads should use no second buffer. */
  get isBusy(): boolean {
    return this.#inUse.size >= BUSY_COUNT;
  }

  take(): Buffer {
    const buffer = this.#idle.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#inUse.add(buffer);
    return buffer;
  }

  /** Returns a buffer for reuse. The caller must not read or write it afterwards. */
  giveBack(buffer: Buffer): void {
    // Idle twice, it would be lent to two downloads, and each would send bytes of the other.
    if (!this.#inUse.delete(buffer)) return;
    this.#idle.push(buffer);
    while (this.#idle.length > Math.max(IDLE_MAX, this.#inUse.size)) this.#idle.pop();
  }
}
