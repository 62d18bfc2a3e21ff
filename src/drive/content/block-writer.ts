import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as otherTasks } from 'node:timers/promises';
import { type Clock, type Instant, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';
import { BLOCK_BYTES } from '../../util/content-hash.ts';
import { errorCodeOf } from '../../util/error-code.ts';
import type { Log } from '../../util/log.ts';
import { Condition, waitAtMost } from '../../util/wait.ts';
import type { RefCounted } from './block-buffers.ts';
import { BlockThread } from './block-thread.ts';

/** A block that waits for the disk. */
export interface WaitingBlock {
  readonly name: string;
  readonly path: string;
  readonly bytes: Uint8Array;
  /** The buffer of the bytes, retained while the block waits or is written. */
  readonly buffer: RefCounted | undefined;
}

/** Maximum size of the blocks that wait in memory for the disk; blocks beyond it are not written. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024;

/** Blocks that are given to the thread at a time: the next one waits there while the first is written. */
const WRITES_MAX = 2;

/** How long a reader waits for the disk before its file is no longer kept, in ms: a slow disk must not slow it down. */
const ROOM_MS_MAX = 50;

/** Pause after a failed write, in ms: most often the disk is full or not mounted. */
const RETRY_PAUSE_MS = 60_000;

export interface BlockWriterDeps {
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Makes the folders. Called before the first block, and again after each failure of the disk. */
  readonly prepare: () => Promise<void>;
  readonly onWritten: (name: string, fileBytes: number) => void;
}

/**
 * Writes blocks to the disk in the background. A failing disk is logged once, and tried again with the next block after
 * a pause.
 */
export class BlockWriter {
  readonly #waiting = new Map<string, WaitingBlock>();
  readonly #thread = new BlockThread();
  #waitingBytes = 0;
  /** Notified when a block is written or given up. */
  readonly #dropped = new Condition();
  /** The blocks that are being written. */
  readonly #writing = new Set<WaitingBlock>();
  #state: 'ready' | 'failed' | 'closed' = 'ready';
  /** When a disk that has failed is tried again. */
  #retryAt: Instant = LONG_AGO;
  /** Loops that write one block after the other. */
  readonly #loops = new Set<Promise<void>>();
  /** How many of them still take blocks. */
  #loopCount = 0;

  constructor(private readonly deps: BlockWriterDeps) {}

  /** Prepares the disk. A failure counts as a failed write. */
  async open(): Promise<void> {
    await this.deps.prepare().catch((failure) => this.#failed(failure));
  }

  /** Returns a block that is not on the disk yet. */
  waiting(name: string): WaitingBlock | undefined {
    return this.#waiting.get(name);
  }

  /** Queues a block. Returns `false`, and does not write it, when the disk is too far behind or has failed. */
  add(block: WaitingBlock): boolean {
    if (this.#waiting.has(block.name)) return true;
    if (!this.#mayWrite() || this.#waitingBytes + block.bytes.length > WAITING_BYTES_MAX) return false;
    block.buffer?.retain();
    this.#waiting.set(block.name, block);
    this.#waitingBytes += block.bytes.length;
    // A disk that has failed is tried with one block first.
    if (this.#loopCount < (this.#state === 'failed' ? 1 : WRITES_MAX)) {
      const loop = this.#loop().finally(() => this.#loops.delete(loop));
      this.#loops.add(loop);
    }
    return true;
  }

  /** See `BlockCache.room`. */
  async room(signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    const latest = instantIn(clock, ROOM_MS_MAX);
    while (this.#mayWrite() && this.#waitingBytes + BLOCK_BYTES > WAITING_BYTES_MAX) {
      const leftMs = remainingMs(clock, latest);
      if (leftMs <= 0) return;
      await waitAtMost(clock, leftMs, this.#dropped.wait(signal), () => undefined);
    }
  }

  drop(name: string): void {
    const block = this.#waiting.get(name);
    if (!block) return;
    this.#waitingBytes -= block.bytes.length;
    this.#waiting.delete(name);
    this.#dropped.notify();
    // The disk still reads the block that is being written.
    if (!this.#writing.has(block)) block.buffer?.release();
  }

  /** Drops all blocks, and writes no more. */
  disable(): void {
    this.#state = 'closed';
    this.#dropAll();
  }

  async close(): Promise<void> {
    while (this.#loops.size > 0) await Promise.all(this.#loops);
    this.disable();
    await this.#thread.close();
  }

  #mayWrite(): boolean {
    if (this.#state === 'failed') return this.deps.clock.instant() >= this.#retryAt;
    return this.#state === 'ready';
  }

  async #loop(): Promise<void> {
    this.#loopCount++;
    // The client that waits for this block gets it first.
    await otherTasks();
    if (this.#state === 'failed') await this.#recover();
    for (let block = this.#next(); block; block = this.#next()) {
      this.#writing.add(block);
      const fileBytes = await this.#write(block).catch((failure) => this.#writeFailed(failure));
      this.#writing.delete(block);
      // It may have been dropped meanwhile.
      const isWanted = this.#waiting.get(block.name) === block;
      if (fileBytes !== undefined && isWanted) this.deps.onWritten(block.name, fileBytes);
      else if (fileBytes !== undefined) await unlink(block.path).catch(() => {});
      if (isWanted) this.drop(block.name);
      else block.buffer?.release();
      if (fileBytes !== undefined) this.#succeeded();
    }
    this.#loopCount--;
  }

  async #recover(): Promise<void> {
    await this.deps.prepare().catch((failure) => this.#failed(failure));
  }

  #next(): WaitingBlock | undefined {
    for (const block of this.#waiting.values()) if (!this.#writing.has(block)) return block;
    return undefined;
  }

  #write({ name, path, bytes }: WaitingBlock): Promise<number> {
    return this.#thread.write({ name, path, incoming: join(this.deps.root, 'incoming'), bytes });
  }

  #writeFailed(failure: unknown): undefined {
    // ENOENT: the cache was deleted between two steps.
    if (!isOutOfHandles(failure) && errorCodeOf(failure) !== 'ENOENT') this.#failed(failure);
  }

  #failed(failure: unknown): void {
    if (this.#state === 'closed') return;
    if (this.#state === 'ready')
      this.deps.log.warn('cannot write to the block cache; reads continue without it', {
        directory: this.deps.root,
        problem: failure instanceof Error ? failure.message : String(failure),
      });
    this.#state = 'failed';
    this.#retryAt = instantIn(this.deps.clock, RETRY_PAUSE_MS);
    this.#dropAll();
  }

  #succeeded(): void {
    if (this.#state !== 'failed') return;
    this.#state = 'ready';
    this.deps.log.info('the block cache is writable again', { directory: this.deps.root });
  }

  #dropAll(): void {
    for (const name of [...this.#waiting.keys()]) this.drop(name);
  }
}

/** Whether the process has run out of file handles. That passes, and says nothing about the disk. */
export function isOutOfHandles(failure: unknown): boolean {
  const code = errorCodeOf(failure);
  return code === 'EMFILE' || code === 'ENFILE';
}
