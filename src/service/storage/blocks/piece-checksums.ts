import { crc32 } from 'node:zlib';
import type { ByteRange } from '../../../util/ranges.ts';

/** Size of a piece of a block that has a checksum of its own, in bytes. */
const PIECE_BYTES = 64 * 1024;

/** Size of a CRC-32. It detects damage by the disk; the SHA-256 of the whole block is checked when it is read whole. */
const CHECKSUM_BYTES = 4;

/** Computes the checksums of a block's pieces while its bytes arrive. */
export class PieceChecksums {
  readonly #done: number[] = [];
  #last = 0;
  #lastBytes = 0;

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const some = bytes.subarray(at, at + PIECE_BYTES - this.#lastBytes);
      this.#last = crc32(some, this.#last);
      this.#lastBytes += some.length;
      at += some.length;
      if (this.#lastBytes === PIECE_BYTES) this.#closePiece();
    }
  }

  /** Returns the checksums of all bytes, one after the other. */
  finish(): Buffer {
    if (this.#lastBytes > 0) this.#closePiece();
    const checksums = Buffer.alloc(this.#done.length * CHECKSUM_BYTES);
    this.#done.forEach((checksum, piece) => {
      checksums.writeUInt32BE(checksum, piece * CHECKSUM_BYTES);
    });
    return checksums;
  }

  #closePiece(): void {
    this.#done.push(this.#last);
    this.#last = 0;
    this.#lastBytes = 0;
  }
}

/** Returns the range of the pieces that hold the bytes of `part`. */
export function piecesAround({ start, end }: ByteRange, blockBytes: number): ByteRange {
  return {
    start: start - (start % PIECE_BYTES),
    end: Math.min(Math.ceil(end / PIECE_BYTES) * PIECE_BYTES, blockBytes),
  };
}

/** Whether `pieces`, which begin at `start` of their block, have its checksums. */
export function haveChecksums(pieces: Uint8Array, start: number, checksums: Buffer): boolean {
  const computed = new PieceChecksums();
  computed.add(pieces);
  const first = (start / PIECE_BYTES) * CHECKSUM_BYTES;
  const expected = computed.finish();
  return expected.equals(checksums.subarray(first, first + expected.length));
}
