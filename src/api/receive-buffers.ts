import type { OnReadOpts, Socket } from 'node:net';

/** Size of a buffer, in bytes: TLS brings at most 16 KiB at a time, a plain connection fills it. */
const BUFFER_BYTES = 64 * 1024;

/** Size of a piece from which on its buffer is reused, in bytes: the bytes of a long body come in such pieces. */
const PIECE_BYTES_MIN = 16 * 1024;

/**
 * The memory that a connection receives into: a few buffers in turns. Node would make a new one for each piece of 16 KiB,
 * and collecting this garbage takes as much time as receiving the bytes. A buffer is reused when the stream has nothing of
 * it any more, so its bytes must be copied as soon as they are read from the stream. undici keeps headers where they came
 * until their head is complete, so a buffer is reused only when more bytes than a head has have come after it.
 */
export class ReceiveBuffers implements OnReadOpts {
  /** The connection, set before it can receive. */
  socket: Socket | undefined;
  #current: Buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** Earlier buffers with pieces of at least `PIECE_BYTES_MIN`, oldest first. */
  readonly #used: Buffer[] = [];
  readonly #usedMin: number;
  #pieceBytes = 0;

  /** `headBytesMax`: maximum size of an answer's head. */
  constructor(headBytesMax: number) {
    this.#usedMin = Math.ceil(headBytesMax / PIECE_BYTES_MIN);
  }

  /** Returns the buffer for the next piece. */
  readonly buffer = (): Buffer => {
    if (this.#pieceBytes >= PIECE_BYTES_MIN) this.#used.push(this.#current);
    const oldest = this.#used.length > this.#usedMin ? this.#used.shift() : undefined;
    const areEarlierRead = (this.socket?.readableLength ?? 0) <= this.#pieceBytes;
    this.#current = (areEarlierRead ? oldest : undefined) ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    return this.#current;
  };

  /** Takes the piece that has come. Returns whether the stream wants more. */
  readonly callback = (bytes: number): boolean => {
    this.#pieceBytes = bytes;
    return this.socket?.push(this.#current.subarray(0, bytes)) ?? false;
  };
}
