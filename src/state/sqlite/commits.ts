import { type ChangeOutcome, commitGroup, isSqliteError } from '../../util/sqlite/group-commit.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { asStateError } from './state-database.ts';

/**
 * The failure that an acknowledged change survives: a loss of power, or only the end of davgate's process, for data
 * that may be lost without harm. The order is kept either way: all changes before a durable one are durable too.
 */
export type Durability = 'power-loss' | 'process-crash';

interface Waiting {
  readonly durability: Durability;
  readonly change: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits the changes of one turn of the event loop together (`commitGroup`). A change that refuses its request throws
 * before it has changed anything.
 */
export class Commits {
  readonly #database: SqliteDatabase;
  readonly #directory: string;
  readonly #reloads: (() => void)[] = [];
  #mirrorsDoubtful = false;
  /** Current setting of the connection; `openDatabase` has set the first. */
  #demanded: Durability = 'power-loss';
  #waiting: Waiting[] = [];
  #closed = false;

  constructor(database: SqliteDatabase, directory: string) {
    this.#database = database;
    this.#directory = directory;
  }

  /** Builds an in-memory copy of the database with `reload`, now and again after SQLite undid a change. */
  mirror(reload: () => void): void {
    reload();
    this.#reloads.push(reload);
  }

  /** Resolves with the result of `change` when it is durable. Throws the error of `change`, or `StateUnwritable`. */
  run<T>(change: () => T, durability: Durability = 'power-loss'): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('the state is closed'));
    return new Promise<T>((resolve, reject) => {
      // `flush` returns each change its own result.
      this.#waiting.push({ durability, change, resolve: (value) => resolve(value as T), reject });
      if (this.#waiting.length === 1) setImmediate(() => this.#flush());
    });
  }

  /** Commits the waiting changes and accepts no more. */
  close(): void {
    this.#closed = true;
    this.#flush();
  }

  #flush(): void {
    const batch = this.#waiting;
    this.#waiting = [];
    if (batch.length === 0) return;
    try {
      const outcomes = this.#commit(batch);
      for (const [index, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index];
        if (outcome && 'value' in outcome) resolve(outcome.value);
        else reject(asStateError(outcome?.error, this.#directory));
      }
    } catch (error) {
      for (const { reject } of batch) reject(asStateError(error, this.#directory));
    }
  }

  #commit(batch: readonly Waiting[]): readonly ChangeOutcome[] {
    this.#reloadIfDoubtful();
    this.#demand(
      batch.some(({ durability }) => durability === 'power-loss') ? 'power-loss' : 'process-crash',
    );
    try {
      return commitGroup(
        this.#database,
        batch.map(({ change }) => change),
        {
          onUndone: (error) => {
            this.#mirrorsDoubtful ||= isSqliteError(error);
          },
        },
      );
    } catch (error) {
      this.#mirrorsDoubtful = true;
      throw error;
    } finally {
      this.#reloadIfDoubtful();
    }
  }

  /**
   * Sets whether commits are synced. Without its fsync a commit survives the end of the process, because the kernel
   * keeps its pages, but no loss of power.
   */
  #demand(durability: Durability): void {
    if (durability === this.#demanded) return;
    this.#database.pragma(`synchronous = ${durability === 'power-loss' ? 'FULL' : 'NORMAL'}`);
    this.#demanded = durability;
  }

  #reloadIfDoubtful(): void {
    if (!this.#mirrorsDoubtful) return;
    for (const reload of this.#reloads) reload();
    this.#mirrorsDoubtful = false;
  }
}
