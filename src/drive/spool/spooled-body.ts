import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { SpoolFile } from './spool-file.ts';

/** Interval of the checks whether the body was read, in ms. Finder gives up when a block waits for 30 s. */
const CHECK_MS = 5_000;

/**
 * Bytes spooled at a check: more than the blocks that clients send (1 MiB at most), and few, so that the spool lasts.
 */
const SPOOL_BYTES = 4 * 1024 * 1024;

/** Size of a piece that is read back from the disk. */
const READ_BYTES = 256 * 1024;

/**
 * A body that is slowly spooled to disk while it is not read, so that the client sees progress while davgate waits for
 * a service that throttles. Spooled bytes are in `file`, and are read first. Without disk space, or when the disk
 * fails, the client waits. Must be read once, and must be closed.
 */
export class SpooledBody implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #stop = new AbortController();
  /** The source's next piece, which was requested for the spool and has not come yet. */
  #pending: Promise<IteratorResult<Uint8Array>> | undefined;
  /** A piece for which the spool had no room. */
  #unspooled: Uint8Array | undefined;
  #readCount = 0;
  #isReading = false;
  #stopSpooling: () => void = () => {};
  #spooling: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #closing: Promise<void> | undefined;

  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly file: SpoolFile,
    private readonly world: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#source = source[Symbol.asyncIterator]();
    void this.#watch();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    this.#readCount += 1;
    this.#isReading = true;
    this.#stopSpooling();
    try {
      // This takes at most one write to the disk.
      await this.#spooling;
      const value = (await this.file.read(READ_BYTES)) ?? this.#takeUnspooled();
      if (value) return { done: false, value };
      const step = this.#pending ?? this.#source.next();
      this.#pending = undefined;
      return await step;
    } finally {
      this.#isReading = false;
    }
  }

  /** Ends the body. Does not wait for the sender, which may be stalled. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Ends the body and removes its file. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    this.#stopSpooling();
    this.#source.return?.().catch(() => {});
    await this.#spooling;
    // A failed write is ignored: the file is not read any further.
    await this.file.close().catch((error) => {
      this.world.log.warn('cannot close or delete a spool file', {
        reason: String(error),
      });
    });
  }

  /** Checks at intervals: a timer for each piece would cost more than the piece. */
  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const countBefore = this.#readCount;
      await this.world.clock.sleep(CHECK_MS, signal).catch(() => {});
      if (signal.aborted || this.#isReading || this.#readCount !== countBefore) continue;
      this.#spooling = this.#spoolPieces();
      await this.#spooling;
    }
  }

  async #spoolPieces(): Promise<void> {
    const ended = new Promise<undefined>((resolve) => {
      this.#stopSpooling = () => resolve(undefined);
    });
    for (let spooledBytes = 0; spooledBytes < SPOOL_BYTES && !this.#unspooled; ) {
      this.#pending ??= this.#source.next();
      // The reader gets a failure of the source after all bytes before it.
      const step = await Promise.race([this.#pending.catch(() => undefined), ended]);
      if (!step || step.done) return;
      this.#pending = undefined;
      spooledBytes += step.value.length;
      await this.#store(step.value);
      if (this.#isReading || this.#stop.signal.aborted) return;
    }
  }

  async #store(piece: Uint8Array): Promise<void> {
    try {
      if (!(await this.file.write(piece))) this.#unspooled = piece;
    } catch (error) {
      this.#unspooled = piece;
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      this.world.log.warn('cannot spool a body to disk; its client waits for the storage service', {
        reason: String(error),
      });
    }
  }

  #takeUnspooled(): Uint8Array | undefined {
    const piece = this.#unspooled;
    this.#unspooled = undefined;
    return piece;
  }
}
