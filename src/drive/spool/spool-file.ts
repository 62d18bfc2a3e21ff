import { type FileHandle, open, rm } from 'node:fs/promises';

/** What all spill files of a drive may hold together. */
export class SpillBudget {
  #leftBytes: number;

  constructor(bytesMax: number) {
    this.#leftBytes = bytesMax;
  }

  /** Whether there was room for `sizeBytes`; they are taken then. */
  take(sizeBytes: number): boolean {
    if (sizeBytes > this.#leftBytes) return false;
    this.#leftBytes -= sizeBytes;
    return true;
  }

  giveBack(sizeBytes: number): void {
    this.#leftBytes += sizeBytes;
  }
}

/** Bytes of one body on disk, first in, first out. The file is made with the first of them. */
export class SpillFile {
  #handle: FileHandle | undefined;
  #writtenBytes = 0;
  #readBytes = 0;

  constructor(
    private readonly path: string,
    private readonly budget: SpillBudget,
  ) {}

  get isEmpty(): boolean {
    return this.#readBytes === this.#writtenBytes;
  }

  /** Whether there was room. Throws the file system's error, and then nothing was added. */
  async write(bytes: Uint8Array): Promise<boolean> {
    if (!this.budget.take(bytes.length)) return false;
    try {
      this.#handle ??= await open(this.path, 'w+', 0o600);
      for (let done = 0; done < bytes.length; ) {
        const at = this.#writtenBytes + done;
        done += (await this.#handle.write(bytes, done, bytes.length - done, at)).bytesWritten;
      }
    } catch (error) {
      this.budget.giveBack(bytes.length);
      throw error;
    }
    this.#writtenBytes += bytes.length;
    return true;
  }

  /** The next bytes, at most `sizeBytesMax`; `undefined` when there are no more. Throws when the disk lost them. */
  async read(sizeBytesMax: number): Promise<Uint8Array | undefined> {
    if (!this.#handle || this.isEmpty) return undefined;
    const buffer = Buffer.allocUnsafe(Math.min(sizeBytesMax, this.#writtenBytes - this.#readBytes));
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, this.#readBytes);
    if (bytesRead === 0) throw new Error('a spill file is shorter than what was written to it');
    this.#readBytes += bytesRead;
    if (this.isEmpty) await this.#empty();
    return buffer.subarray(0, bytesRead);
  }

  async close(): Promise<void> {
    this.budget.giveBack(this.#writtenBytes);
    this.#writtenBytes = 0;
    this.#readBytes = 0;
    const handle = this.#handle;
    this.#handle = undefined;
    if (!handle) return;
    try {
      await handle.close();
    } finally {
      // A body that is not wanted any more would take its room until the next start.
      await rm(this.path, { force: true });
    }
  }

  /** What was read need not stay on the disk. */
  async #empty(): Promise<void> {
    await this.#handle?.truncate(0);
    this.budget.giveBack(this.#writtenBytes);
    this.#writtenBytes = 0;
    this.#readBytes = 0;
  }
}
