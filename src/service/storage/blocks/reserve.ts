import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Committer, Operation } from '../committer.ts';
import { StorageError } from '../storage.ts';
import type { Disk } from './disk.ts';

/** Size of the reserve, in bytes: the database can record the removal of some thousand files with it. */
const RESERVE_BYTES = 4 * 1024 * 1024;

/** Commits that free space, and what they need for it. */
export interface Reserve {
  /** Whether the storage refuses new commits. */
  readonly isClosed: boolean;
  /** Commits an operation that frees space. */
  commit<T>(operation: Operation<T>): Promise<T>;
  /** Restores what `commit` gave up. */
  fill(): Promise<void>;
}

/**
 * Disk space kept free for removals. Without it, not even a removal could be recorded on a full disk, which would then
 * stay full.
 */
export class DiskReserve implements Reserve {
  readonly #path: string;
  #filling: Promise<void> | undefined;

  constructor(
    dataDirectory: string,
    private readonly disk: Disk,
    private readonly committer: Committer,
  ) {
    this.#path = join(dataDirectory, 'reserve');
  }

  get isClosed(): boolean {
    return this.committer.isClosed;
  }

  /** Commits an operation that frees space. On a full disk it gives up the reserve first. */
  async commit<T>(operation: Operation<T>): Promise<T> {
    try {
      return await this.committer.run(operation);
    } catch (failure) {
      if (!(failure instanceof StorageError) || failure.refusal.tag !== 'insufficient_space') throw failure;
      // May fail on a full disk.
      await this.#filling?.catch(() => undefined);
      await this.disk.remove(this.#path);
      return await this.committer.run(operation);
    }
  }

  /** Restores the reserve if the disk has space. */
  fill(): Promise<void> {
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  /** Creates the file unless it has its full size; removes an incomplete one, which may also be that of a killed process. */
  async #fill(): Promise<void> {
    if (await this.#isFull()) return;
    await this.disk.remove(this.#path);
    try {
      const file = await this.disk.create(this.#path);
      try {
        // Random bytes, because some file systems store zeros without using space.
        await file.append([randomBytes(RESERVE_BYTES)]);
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (failure) {
      await this.disk.remove(this.#path);
      throw failure;
    }
  }

  /** Returns whether the file has its last byte. */
  async #isFull(): Promise<boolean> {
    const last = await this.disk.read(this.#path, 1, undefined, RESERVE_BYTES - 1).catch(() => undefined);
    return last?.length === 1;
  }
}
