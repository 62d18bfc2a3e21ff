import { open } from 'node:fs/promises';

/** The fsync of a directory, shared by all who need it at the same time. */
export class DirectorySync {
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(private readonly directory: string) {}

  /** Resolves once every name that was in the directory at the time of the call is on disk. */
  run(): Promise<void> {
    // One that is under way may have begun too early.
    this.#next ??= this.#after(this.#running);
    return this.#next;
  }

  async #after(earlier: Promise<void>): Promise<void> {
    await earlier.catch(() => {});
    this.#running = this.#sync();
    this.#next = undefined;
    await this.#running;
  }

  async #sync(): Promise<void> {
    const handle = await open(this.directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}
