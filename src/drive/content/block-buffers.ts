import { BLOCK_BYTES } from '../../util/content-hash.ts';

/**
 * Buffers kept for the next blocks; as many as are in use, if these are more. The garbage collector gets all others, and
 * waits for 64 MiB of them.
 */
const IDLE_MAX = 4;

/**
 * Smallest size that is taken from the pool, in bytes: smaller buffers are cheap to make and would waste a block's
 * buffer.
 */
const POOLED_BYTES_MIN = BLOCK_BYTES / 8;

/** Buffers in use (32 MiB) from which on readers of the disk take smaller steps. */
const BUSY_COUNT = 8;

/**
 * Something shared that is reused when its last user has released it. Each user retains it once, and releases it once.
 */
export interface RefCounted {
  retain(): void;
  release(): void;
}

/** A buffer in use. It is made with one user: the caller that took it. */
export interface SharedBuffer extends RefCounted {
  readonly bytes: Buffer;
  /** Whether others get it after the last release. The bytes of one that is too small for that stay as they are. */
  readonly isPooled: boolean;
}

/**
 * A pool of buffers for blocks. New ones for each block live just long enough for the garbage collector to take them
 * for old, and pile up by the hundred megabytes.
 */
export class BlockBuffers {
  readonly #idle: Buffer[] = [];
  #inUse = 0;

  /** Whether readers of the disk should take smaller steps. */
  get isBusy(): boolean {
    return this.#inUse >= BUSY_COUNT;
  }

  /** Takes a buffer of `sizeBytes`, at most a block's. */
  take(sizeBytes: number): SharedBuffer {
    if (sizeBytes < POOLED_BYTES_MIN) return new CountedBuffer(Buffer.allocUnsafeSlow(sizeBytes), undefined);
    // Shared, so that the thread that writes blocks needs no copy.
    const whole = this.#idle.pop() ?? Buffer.from(new SharedArrayBuffer(BLOCK_BYTES));
    this.#inUse++;
    return new CountedBuffer(whole.subarray(0, sizeBytes), () => {
      this.#inUse--;
      this.#idle.push(whole);
      while (this.#idle.length > Math.max(IDLE_MAX, this.#inUse)) this.#idle.pop();
    });
  }
}

class CountedBuffer implements SharedBuffer {
  #users = 1;

  constructor(
    readonly bytes: Buffer,
    private readonly giveBack: (() => void) | undefined,
  ) {}

  get isPooled(): boolean {
    return this.giveBack !== undefined;
  }

  retain(): void {
    if (this.#users === 0) throw new Error('a buffer was retained after its last release');
    this.#users++;
  }

  release(): void {
    this.#users--;
    if (this.#users === 0) this.giveBack?.();
    else if (this.#users < 0) throw new Error('a buffer was released twice');
  }
}
