import { FileError } from '../errors.ts';
import type { PendingFiles } from './pending-files.ts';

export interface JournalLimits {
  /** Pending writes of one drive: each costs about a kilobyte of memory. */
  readonly filesMax: number;
  /** What they may take of the disk together. */
  readonly bytesMax: number;
}

export const JOURNAL_LIMITS: JournalLimits = { filesMax: 50_000, bytesMax: 10 * 1024 ** 3 };

/** How much the journal may still take. Bodies on their way are counted in. */
export class JournalRoom {
  #arrivingFiles = 0;
  #arrivingBytes = 0;

  constructor(
    private readonly pending: PendingFiles,
    private readonly limits: JournalLimits,
  ) {}

  /** Whether a body of this size can be taken; of one without a known size, whether it can begin. */
  fits(sizeBytes: number | undefined): boolean {
    const { filesMax, bytesMax } = this.limits;
    if (this.pending.files + this.#arrivingFiles >= filesMax) return false;
    return this.pending.bytes + this.#arrivingBytes + (sizeBytes ?? 1) <= bytesMax;
  }

  /** While `work` takes `body`, handed to it, that is counted. The body throws `no-space` where it does not fit any more. */
  async during<T>(
    body: AsyncIterable<Uint8Array>,
    sizeBytes: number | undefined,
    work: (body: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<T> {
    const arrival = { bytes: sizeBytes ?? 0 };
    this.#arrivingFiles++;
    this.#arrivingBytes += arrival.bytes;
    try {
      return await work(sizeBytes === undefined ? this.#counted(body, arrival) : body);
    } finally {
      this.#arrivingFiles--;
      this.#arrivingBytes -= arrival.bytes;
    }
  }

  async *#counted(body: AsyncIterable<Uint8Array>, arrival: { bytes: number }): AsyncIterable<Uint8Array> {
    for await (const piece of body) {
      arrival.bytes += piece.byteLength;
      this.#arrivingBytes += piece.byteLength;
      if (this.pending.bytes + this.#arrivingBytes > this.limits.bytesMax)
        throw new FileError('no-space', 'the journal is full: too much waits for the storage service');
      yield piece;
    }
  }
}
