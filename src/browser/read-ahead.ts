import type { FileEntry } from '../drive/files.ts';

/** Files up to this size are read before their turn, in bytes. */
const AHEAD_BYTES_MAX = 512 * 1024;

/** How many files are read at the same time. */
const FILES_MAX = 6;

/**
 * Reads files one after the other. Small ones are read ahead of their turn and kept in memory: otherwise each would cost
 * its own round trip to the service.
 */
export class ReadAhead {
  #position = 0;
  #hasBegun = false;
  readonly #started = new Map<number, Promise<Uint8Array>>();

  constructor(
    private readonly files: readonly FileEntry[],
    private readonly read: (file: FileEntry) => AsyncIterable<Uint8Array>,
  ) {}

  /** Whether bytes of the first file have arrived. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Yields the bytes of the next file. */
  async *next(): AsyncGenerator<Uint8Array> {
    const index = this.#position++;
    const file = this.files[index];
    if (!file) throw new Error('more files are read than there are');
    for (let each = index; each < index + FILES_MAX; each++) this.#start(each);
    const started = this.#started.get(index);
    this.#started.delete(index);
    for await (const piece of started === undefined ? this.read(file) : once(started)) {
      this.#hasBegun = true;
      yield piece;
    }
  }

  #start(index: number): void {
    const file = this.files[index];
    if (!file || file.sizeBytes > AHEAD_BYTES_MAX || this.#started.has(index)) return;
    const whole = wholeOf(this.read(file));
    // A failure is thrown when the file's turn comes, if it does.
    whole.catch(() => undefined);
    this.#started.set(index, whole);
  }
}

async function wholeOf(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  // A copy, because a piece is valid only until the next one.
  for await (const piece of bytes) pieces.push(Uint8Array.from(piece));
  return Buffer.concat(pieces);
}

async function* once(bytes: Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield await bytes;
}
