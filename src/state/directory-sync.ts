import { syncDirectory } from '../util/sync-directory.ts';

/** The fsync of a directory, shared by simultaneous callers. */
export class DirectorySync {
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(private readonly directory: string) {}

  /** Resolves when every name that was in the directory at the time of the call is on disk. */
  run(): Promise<void> {
    // The sync in progress may have begun too early.
    this.#next ??= this.#after(this.#running);
    return this.#next;
  }

  async #after(earlier: Promise<void>): Promise<void> {
    await earlier.catch(() => {});
    this.#running = syncDirectory(this.directory);
    this.#next = undefined;
    await this.#running;
  }
}
