import { BLOCK_BYTES } from '../../util/content-hash.ts';

/** Kept for the next blocks. All others are left to the garbage collector. */
const IDLE_MAX = 4;

/** Smaller ones are cheap to make, and would waste most of a block's buffer. */
const POOLED_BYTES_MIN = BLOCK_BYTES / 8;

/** Lent at a time before whoever can do with less should: 32 MiB. */
const BUSY_COUNT = 8;

/** Bytes that several may need; who needs them holds them. When the last one lets go they become other bytes. */
export interface Lease {
  hold(): void;
  release(): void;
}

/** A buffer that is lent out. Whoever gets it holds it. */
export interface LentBuffer extends Lease {
  readonly bytes: Buffer;
}

/**
 * Buffers for blocks, used again and again. Made anew for each block they live just long enough to be taken for
 * old by the garbage collector, and pile up by the hundred megabytes.
 */
export class BlockBuffers {
  readonly #idle: Buffer[] = [];
  #lentCount = 0;

  /** Whether so many are lent that readers of the disk should take smaller steps. */
  get isBusy(): boolean {
    return this.#lentCount >= BUSY_COUNT;
  }

  /** A buffer of `sizeBytes`, at most a block's. */
  lend(sizeBytes: number): LentBuffer {
    if (sizeBytes < POOLED_BYTES_MIN) return new Lent(Buffer.allocUnsafeSlow(sizeBytes), () => {});
    const whole = this.#idle.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#lentCount++;
    return new Lent(whole.subarray(0, sizeBytes), () => {
      this.#lentCount--;
      if (this.#idle.length < IDLE_MAX) this.#idle.push(whole);
    });
  }
}

class Lent implements LentBuffer {
  #holders = 1;

  constructor(
    readonly bytes: Buffer,
    private readonly giveBack: () => void,
  ) {}

  hold(): void {
    if (this.#holders === 0) throw new Error('a buffer was held after it had been given back');
    this.#holders++;
  }

  release(): void {
    this.#holders--;
    if (this.#holders === 0) this.giveBack();
    else if (this.#holders < 0) throw new Error('a buffer was given back twice');
  }
}
