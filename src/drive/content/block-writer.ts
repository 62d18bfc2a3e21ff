import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Clock, type Instant, instantIn, LONG_AGO } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { Lease } from './block-buffers.ts';
import { encodeHeader } from './block-file.ts';

/** A block on its way to the disk. */
export interface WaitingBlock {
  readonly name: string;
  readonly path: string;
  readonly bytes: Uint8Array;
  /** Of the bytes, for as long as the block waits or is written. */
  readonly lease: Lease | undefined;
}

/** Blocks that wait in memory for the disk; what comes beyond them is not written. */
const WAITING_BYTES_MAX = 12 * 1024 * 1024;

/** A disk that refused is tried again after this time: most often it was full, or not mounted. */
const REST_MS = 60_000;

export interface BlockWriterParts {
  readonly root: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Makes the folders; called before the first block, and again after each trouble with the disk. */
  readonly prepare: () => Promise<void>;
  readonly onWritten: (name: string, fileBytes: number) => void;
}

/**
 * Writes blocks behind the back of those who read them, one at a time, each under a name of its own first: a
 * file with a block's name is whole. A disk that refuses is warned of once, left alone for a while and then
 * tried again with the next block.
 */
export class BlockWriter {
  readonly #waiting = new Map<string, WaitingBlock>();
  #waitingBytes = 0;
  /** The block that is being written. */
  #written: WaitingBlock | undefined;
  #state: 'ready' | 'failed' | 'closed' = 'ready';
  /** Of a disk that has failed: when it is tried again. */
  #restUntil: Instant = LONG_AGO;
  #running: Promise<void> | undefined;

  constructor(private readonly parts: BlockWriterParts) {}

  /** Prepares the disk; a failure is one of the disk like any other. */
  async open(): Promise<void> {
    await this.parts.prepare().catch((failure) => this.#failed(failure));
  }

  /** The bytes of a block that is not on the disk yet. */
  waiting(name: string): WaitingBlock | undefined {
    return this.#waiting.get(name);
  }

  /** Writes the block soon, or not at all when the disk is behind: whether it is to be written. */
  add(block: WaitingBlock): boolean {
    if (this.#waiting.has(block.name)) return true;
    if (!this.#mayWrite() || this.#waitingBytes + block.bytes.length > WAITING_BYTES_MAX) return false;
    block.lease?.hold();
    this.#waiting.set(block.name, block);
    this.#waitingBytes += block.bytes.length;
    this.#running ??= this.#run();
    return true;
  }

  drop(name: string): void {
    const block = this.#waiting.get(name);
    if (!block) return;
    this.#waitingBytes -= block.bytes.length;
    this.#waiting.delete(name);
    // The disk still reads what is being written.
    if (block !== this.#written) block.lease?.release();
  }

  /** Writes nothing more. */
  disable(): void {
    this.#state = 'closed';
    this.#dropAll();
  }

  async close(): Promise<void> {
    await this.#running;
    this.disable();
  }

  #mayWrite(): boolean {
    if (this.#state === 'failed') return this.parts.clock.instant() >= this.#restUntil;
    return this.#state === 'ready';
  }

  async #run(): Promise<void> {
    if (this.#state === 'failed') await this.#recover();
    for (let block = this.#first(); block; block = this.#first()) {
      this.#written = block;
      const fileBytes = await this.#write(block).catch((failure) => this.#writeFailed(failure));
      this.#written = undefined;
      // Dropped meanwhile: it is not wanted any more.
      const isWanted = this.#waiting.get(block.name) === block;
      if (fileBytes !== undefined && isWanted) this.parts.onWritten(block.name, fileBytes);
      else if (fileBytes !== undefined) await unlink(block.path).catch(() => {});
      if (isWanted) this.drop(block.name);
      else block.lease?.release();
      if (fileBytes !== undefined) this.#succeeded();
    }
    this.#running = undefined;
  }

  async #recover(): Promise<void> {
    await this.parts.prepare().catch((failure) => this.#failed(failure));
  }

  #first(): WaitingBlock | undefined {
    return this.#waiting.values().next().value;
  }

  /** The length of the file written. */
  async #write({ name, path, bytes }: WaitingBlock): Promise<number> {
    const header = await encodeHeader(name, bytes);
    const incoming = join(this.parts.root, 'incoming', randomUUID());
    try {
      await writeWhole(incoming, [header, bytes]);
      await again(dirname(path), () => rename(incoming, path));
    } catch (failure) {
      await unlink(incoming).catch(() => {});
      throw failure;
    }
    return header.length + bytes.length;
  }

  #writeFailed(failure: unknown): undefined {
    // Missing: someone deleted the cache between two steps.
    if (!isOutOfHandles(failure) && codeOf(failure) !== 'ENOENT') this.#failed(failure);
  }

  #failed(failure: unknown): void {
    if (this.#state === 'closed') return;
    if (this.#state === 'ready')
      this.parts.log.warn('the block cache cannot be written to: reads go on without it', {
        directory: this.parts.root,
        problem: failure instanceof Error ? failure.message : String(failure),
      });
    this.#state = 'failed';
    this.#restUntil = instantIn(this.parts.clock, REST_MS);
    this.#dropAll();
  }

  #succeeded(): void {
    if (this.#state !== 'failed') return;
    this.#state = 'ready';
    this.parts.log.info('the block cache can be written to again', { directory: this.parts.root });
  }

  #dropAll(): void {
    for (const name of [...this.#waiting.keys()]) this.drop(name);
  }
}

/** Whether the process has no more file handles for now: that passes, and says nothing of the disk. */
export function isOutOfHandles(failure: unknown): boolean {
  const code = codeOf(failure);
  return code === 'EMFILE' || code === 'ENFILE';
}

function codeOf(failure: unknown): unknown {
  return failure instanceof Error && 'code' in failure ? failure.code : undefined;
}

async function writeWhole(path: string, parts: readonly Uint8Array[]): Promise<void> {
  const file = await again(dirname(path), () => open(path, 'wx', 0o600));
  try {
    const { bytesWritten } = await file.writev([...parts]);
    if (bytesWritten !== parts.reduce((sum, part) => sum + part.length, 0))
      throw new Error('the disk took only a part of a block: it may be full');
  } finally {
    await file.close();
  }
}

/** Someone may delete the cache at any time: makes `folder` anew when `work` finds it missing. */
async function again<Value>(folder: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (failure) {
    if (codeOf(failure) !== 'ENOENT') throw failure;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await work();
  }
}
