import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { SpillFile } from './spool-file.ts';

/** A body of which nothing was taken for so long is looked after: Finder gives up when a block waits for 30 s. */
const LOOK_MS = 5_000;

/** Taken at each look. Clients hand over blocks of 1 MiB at most, and the bounded disk is to last for long. */
const TAKE_BYTES = 4 * 1024 * 1024;

/** Read back at once. */
const READ_BYTES = 256 * 1024;

/**
 * A body that goes on being taken, slowly, while nobody reads it: a service that throttles is waited for, and the
 * client must see that its bytes are going somewhere. What is taken ahead lies in `file`, and is read first. When
 * there is no room, or the disk fails, the client waits after all. To be read once, and closed in any case.
 */
export class PatientBody implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #stop = new AbortController();
  /** Asked of the source ahead, and not taken yet. */
  #pending: Promise<IteratorResult<Uint8Array>> | undefined;
  /** What found no room in the file. */
  #kept: Uint8Array | undefined;
  #pulls = 0;
  #isPulling = false;
  #endLook: () => void = () => {};
  #look: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #closing: Promise<void> | undefined;

  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly file: SpillFile,
    private readonly world: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#source = source[Symbol.asyncIterator]();
    void this.#watch();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    this.#pulls += 1;
    this.#isPulling = true;
    this.#endLook();
    try {
      // At most one write to the disk.
      await this.#look;
      const value = (await this.file.read(READ_BYTES)) ?? this.#takeKept();
      if (value) return { done: false, value };
      const step = this.#pending ?? this.#source.next();
      this.#pending = undefined;
      return await step;
    } finally {
      this.#isPulling = false;
    }
  }

  /** Nothing more is wanted. Does not wait for the sender, which may be stalled. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Removes what is on the disk. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    this.#endLook();
    this.#source.return?.().catch(() => {});
    await this.#look;
    // What becomes of the write does not hang on a file that nobody reads any more.
    await this.file.close().catch((error) => {
      this.world.log.warn('a file that held a body could not be closed or deleted', {
        reason: String(error),
      });
    });
  }

  /** One look now and then: a timer for each piece would cost more than the piece. */
  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const seen = this.#pulls;
      await this.world.clock.sleep(LOOK_MS, signal).catch(() => {});
      if (signal.aborted || this.#isPulling || this.#pulls !== seen) continue;
      this.#look = this.#takeAhead();
      await this.#look;
    }
  }

  async #takeAhead(): Promise<void> {
    const ended = new Promise<undefined>((resolve) => {
      this.#endLook = () => resolve(undefined);
    });
    for (let takenBytes = 0; takenBytes < TAKE_BYTES && !this.#kept; ) {
      this.#pending ??= this.#source.next();
      // A failure is for the reader, who comes to it after all that was before.
      const step = await Promise.race([this.#pending.catch(() => undefined), ended]);
      if (!step || step.done) return;
      this.#pending = undefined;
      takenBytes += step.value.length;
      await this.#spill(step.value);
      if (this.#isPulling || this.#stop.signal.aborted) return;
    }
  }

  async #spill(piece: Uint8Array): Promise<void> {
    try {
      if (!(await this.file.write(piece))) this.#kept = piece;
    } catch (error) {
      this.#kept = piece;
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      this.world.log.warn('no disk for a body that the service does not take yet; its sender waits', {
        reason: String(error),
      });
    }
  }

  #takeKept(): Uint8Array | undefined {
    const kept = this.#kept;
    this.#kept = undefined;
    return kept;
  }
}
