import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Committer, Operation } from '../committer.ts';
import { codeOf } from '../errors.ts';
import { StorageError } from '../storage.ts';
import type { Disk } from './disk.ts';

/** Enough for the database to note the removal of some thousand files. */
const RESERVE_BYTES = 4 * 1024 * 1024;

/**
 * Space kept back for removals: on a full disk not even a removal could be written down, and the disk would
 * stay full for ever.
 */
export class Reserve {
  readonly #path: string;
  #filling: Promise<void> | undefined;

  constructor(
    dataDirectory: string,
    private readonly disk: Disk,
    private readonly committer: Committer,
  ) {
    this.#path = join(dataDirectory, 'reserve');
  }

  /** Whether no more can be committed. */
  get isClosed(): boolean {
    return this.committer.isClosed;
  }

  /** Commits an operation that makes room; on a full disk with the help of the reserve. */
  async commit<T>(operation: Operation<T>): Promise<T> {
    try {
      return await this.committer.run(operation);
    } catch (failure) {
      if (!(failure instanceof StorageError) || failure.refusal.tag !== 'insufficient_space') throw failure;
      // It may fail, as the disk is full.
      await this.#filling?.catch(() => undefined);
      await this.disk.remove(this.#path);
      return await this.committer.run(operation);
    }
  }

  /** Keeps the space back again, if there is any. */
  fill(): Promise<void> {
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  /** Makes the file, unless it is there; a partial one would only be in the way. */
  async #fill(): Promise<void> {
    try {
      const file = await this.disk.create(this.#path);
      try {
        // Random, as zeros may take no space.
        await file.append([randomBytes(RESERVE_BYTES)]);
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (failure) {
      if (codeOf(failure) === 'EEXIST') return;
      await this.disk.remove(this.#path);
      throw failure;
    }
  }
}
