import { type FileHandle, open, rm } from 'node:fs/promises';

/** The disk space of all spool files together. */
export class SpoolBudget {
  #leftBytes: number;

  constructor(bytesMax: number) {
    this.#leftBytes = bytesMax;
  }

  /** Reserves `sizeBytes`. Returns `false`, and reserves nothing, when there is no room for them. */
  reserve(sizeBytes: number): boolean {
    if (sizeBytes > this.#leftBytes) return false;
    this.#leftBytes -= sizeBytes;
    return true;
  }

  release(sizeBytes: number): void {
    this.#leftBytes += sizeBytes;
  }
}

/** Bytes of one body on the disk, first in, first out. The file is created for the first of them. */
export class SpoolFile {
  #handle: FileHandle | undefined;
  #writtenBytes = 0;
  #readBytes = 0;

  constructor(
    private readonly path: string,
    private readonly budget: SpoolBudget,
  ) {}

  get isEmpty(): boolean {
    return this.#readBytes === this.#writtenBytes;
  }

  /** Adds `bytes`. Returns `false` without room for them. Adds nothing when it throws the file system's error. */
  async write(bytes: Uint8Array): Promise<boolean> {
    if (!this.budget.reserve(bytes.length)) return false;
    try {
      this.#handle ??= await open(this.path, 'w+', 0o600);
      for (let done = 0; done < bytes.length; ) {
        const at = this.#writtenBytes + done;
        done += (await this.#handle.write(bytes, done, bytes.length - done, at)).bytesWritten;
      }
    } catch (error) {
      this.budget.release(bytes.length);
      throw error;
    }
    this.#writtenBytes += bytes.length;
    return true;
  }

  /**
   * Removes and returns the next bytes, at most `sizeBytesMax`; `undefined` at the end. Throws when the disk has lost
   * them.
   */
  async read(sizeBytesMax: number): Promise<Uint8Array | undefined> {
    if (!this.#handle || this.isEmpty) return undefined;
    const buffer = Buffer.allocUnsafe(Math.min(sizeBytesMax, this.#writtenBytes - this.#readBytes));
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, this.#readBytes);
    if (bytesRead === 0) throw new Error('a spool file is shorter than the bytes written to it');
    this.#readBytes += bytesRead;
    if (this.isEmpty) await this.#empty();
    return buffer.subarray(0, bytesRead);
  }

  async close(): Promise<void> {
    this.budget.release(this.#writtenBytes);
    this.#writtenBytes = 0;
    this.#readBytes = 0;
    const handle = this.#handle;
    this.#handle = undefined;
    if (!handle) return;
    try {
      await handle.close();
    } finally {
      // Also when closing failed: the file would take space until the next start.
      await rm(this.path, { force: true });
    }
  }

  /** Frees the space of bytes that were read. */
  async #empty(): Promise<void> {
    await this.#handle?.truncate(0);
    this.budget.release(this.#writtenBytes);
    this.#writtenBytes = 0;
    this.#readBytes = 0;
  }
}
