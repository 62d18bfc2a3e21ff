import type { OnReadOpts, Socket } from 'node:net';

/** Size of a buffer, in bytes: TLS brings at most 16 KiB at a time, a plain connection fills it. */
const BUFFER_BYTES = 64 * 1024;

/** Maximum size of an answer's head in undici, in bytes. */
const HEAD_BYTES_MAX = 16 * 1024;

/**
 * The memory that a connection receives into: two buffers in turns. Node would make a new one for each piece of 16 KiB,
 * and collecting this garbage takes as much time as receiving the bytes. A buffer is reused when the stream has nothing of
 * it any more, so its bytes must be copied as soon as they are read from the stream. A smaller piece than the largest head
 * is never overwritten: undici keeps the headers where they came until the head is complete.
 */
export class ReceiveBuffers implements OnReadOpts {
  /** The connection, set before it can receive. */
  socket: Socket | undefined;
  #current: Buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** The buffer of the piece before, if it may be overwritten. */
  #other: Buffer | undefined;
  #pieceBytes = 0;

  /** Returns the buffer for the next piece. */
  readonly buffer = (): Buffer => {
    const isOtherRead = (this.socket?.readableLength ?? 0) <= this.#pieceBytes;
    const next = (isOtherRead ? this.#other : undefined) ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.#other = this.#pieceBytes >= HEAD_BYTES_MAX ? this.#current : undefined;
    this.#current = next;
    return next;
  };

  /** Takes the piece that has come. Returns whether the stream wants more. */
  readonly callback = (bytes: number): boolean => {
    this.#pieceBytes = bytes;
    return this.socket?.push(this.#current.subarray(0, bytes)) ?? false;
  };
}
