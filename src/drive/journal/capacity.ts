import { FileError } from '../errors.ts';
import type { PendingFiles } from './pending-files.ts';

export interface JournalLimits {
  /** Maximum number of pending writes of a drive; each takes about a kilobyte of memory. */
  readonly filesMax: number;
  /** Maximum size of their bodies together. */
  readonly bytesMax: number;
}

export const JOURNAL_LIMITS: JournalLimits = { filesMax: 50_000, bytesMax: 10 * 1024 ** 3 };

/** How much more fits into the journal. Bodies that are being received count as well. */
export class JournalCapacity {
  #arrivingFiles = 0;
  #arrivingBytes = 0;

  constructor(
    private readonly pending: PendingFiles,
    private readonly limits: JournalLimits,
  ) {}

  /** Returns whether a body of this size fits; for a body of unknown size, whether its first byte does. */
  fits(sizeBytes: number | undefined): boolean {
    const { filesMax, bytesMax } = this.limits;
    if (this.pending.files + this.#arrivingFiles >= filesMax) return false;
    return this.pending.bytes + this.#arrivingBytes + (sizeBytes ?? 1) <= bytesMax;
  }

  /**
   * Counts `body` while `work` receives it. The body that `work` gets throws `no-space` when it does not fit any more.
   */
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
        throw new FileError('no-space', 'the journal is full; too many writes wait for the storage service');
      yield piece;
    }
  }
}
