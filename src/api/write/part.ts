import { ContentHasher } from '../../util/content-hash.ts';

/** A part of a file whose bytes are gathered and hashed as they come. */
export class Part {
  readonly #hasher: ContentHasher;
  #buffer: Buffer;
  sizeBytes = 0;

  /** Starts in `buffer` and grows up to `sizeBytesMax`. Calls `onBlock` with the hash of each block. */
  constructor(
    readonly offset: number,
    private readonly sizeBytesMax: number,
    buffer: Buffer,
    onBlock: (sha256: Buffer) => void,
  ) {
    this.#buffer = buffer;
    this.#hasher = new ContentHasher(onBlock);
  }

  get isFull(): boolean {
    return this.sizeBytes === this.sizeBytesMax;
  }

  get end(): number {
    return this.offset + this.sizeBytes;
  }

  get buffer(): Buffer {
    return this.#buffer;
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.sizeBytes);
  }

  /** Copies as much of `chunk` as fits, and returns the rest. */
  add(chunk: Uint8Array): Uint8Array {
    const piece = chunk.subarray(0, this.sizeBytesMax - this.sizeBytes);
    this.#makeRoom(this.sizeBytes + piece.length);
    this.#buffer.set(piece, this.sizeBytes);
    this.#hasher.update(piece);
    this.sizeBytes += piece.length;
    return chunk.subarray(piece.length);
  }

  /** Ends the part and returns the content hash of its bytes alone. */
  digest(): string {
    return this.#hasher.digest();
  }

  #makeRoom(neededBytes: number): void {
    if (neededBytes <= this.#buffer.length) return;
    const larger = Math.max(neededBytes, this.#buffer.length * 2);
    const buffer = Buffer.allocUnsafeSlow(Math.min(larger, this.sizeBytesMax));
    buffer.set(this.bytes);
    this.#buffer = buffer;
  }
}
