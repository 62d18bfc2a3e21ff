import { statfs } from 'node:fs/promises';
import { errorCodeOf } from '../util/error-code.ts';
import { JournalFull } from './journal.ts';

/** Bytes written between two checks of the free space; less than any reserve. */
const LOOK_EVERY_BYTES = 4 * 1024 * 1024;

const DISK_FULL = "the disk with davgate's data directory is full";

/** The free space of a disk that other parts of davgate need too. */
export class DiskRoom {
  /** Bytes written since the last check of the free space. */
  #unseenBytes = LOOK_EVERY_BYTES;

  constructor(
    private readonly directory: string,
    /** Space that is left free, in bytes. */
    private readonly reservedBytes: number,
  ) {}

  /** Counts bytes that are about to be written. Throws `JournalFull` when less than the reserve is free. */
  async require(takenBytes: number): Promise<void> {
    this.#unseenBytes += takenBytes;
    if (this.#unseenBytes < LOOK_EVERY_BYTES) return;
    const { bavail, bsize } = await statfs(this.directory);
    // A full disk is checked again at each write.
    if (bavail * bsize < this.reservedBytes) throw new JournalFull(DISK_FULL);
    this.#unseenBytes = 0;
  }
}

/** Returns `JournalFull` for an error that reports a full disk, otherwise `error`. */
export function asFull(error: unknown): unknown {
  const isFull = ['ENOSPC', 'EDQUOT', 'SQLITE_FULL'].includes(
    errorCodeOf(error) || errorCodeOf(causeOf(error)),
  );
  return isFull ? new JournalFull(DISK_FULL, { cause: error }) : error;
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
