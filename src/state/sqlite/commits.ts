import type { SqliteDatabase } from '../../util/sqlite.ts';
import { Sqlite } from '../../util/sqlite.ts';
import { asStateError } from './state-database.ts';

/**
 * What a change outlives once it was acknowledged: everything, or the end of davgate but not a power cut, for what
 * may be lost without harm. The order stays: what is on disk holds all that was before it.
 */
export type Outlives = 'power-cut' | 'kill';

interface Waiting {
  readonly outlives: Outlives;
  readonly change: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/**
 * Puts the changes that come in one turn of the event loop into one transaction, in their order, so that
 * they share its fsync. A change that throws is undone alone; a commit that fails undoes all. A change that
 * refuses what it was asked throws before it has changed anything.
 */
export class Commits {
  readonly #database: SqliteDatabase;
  readonly #directory: string;
  readonly #alone: (change: () => unknown) => unknown;
  readonly #reloads: (() => void)[] = [];
  #mirrorsDoubtful = false;
  /** As `openDatabase` has set it. */
  #demanded: Outlives = 'power-cut';
  #waiting: Waiting[] = [];
  #closed = false;

  constructor(database: SqliteDatabase, directory: string) {
    this.#database = database;
    this.#directory = directory;
    this.#alone = database.transaction((change: () => unknown) => change());
  }

  /** What is kept in memory beside the database: built by `reload` now, and again after SQLite undid a change. */
  mirror(reload: () => void): void {
    reload();
    this.#reloads.push(reload);
  }

  /** Resolves with what `change` returns once that is safe. Throws what it throws, or `StateUnwritable`. */
  run<T>(change: () => T, outlives: Outlives = 'power-cut'): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('the state is closed'));
    return new Promise<T>((resolve, reject) => {
      // `flush` gives each change its own result back.
      this.#waiting.push({ outlives, change, resolve: (value) => resolve(value as T), reject });
      if (this.#waiting.length === 1) setImmediate(() => this.#flush());
    });
  }

  /** Commits what is waiting and takes no more. */
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
        else reject(outcome?.error);
      }
    } catch (error) {
      for (const { reject } of batch) reject(asStateError(error, this.#directory));
    }
  }

  #commit(batch: readonly Waiting[]): readonly Outcome[] {
    this.#reloadIfDoubtful();
    this.#demand(batch.some(({ outlives }) => outlives === 'power-cut') ? 'power-cut' : 'kill');
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      const outcomes = batch.map(({ change }) => this.#outcomeOf(change));
      this.#database.exec('COMMIT');
      this.#reloadIfDoubtful();
      return outcomes;
    } catch (error) {
      this.#mirrorsDoubtful = true;
      if (this.#database.inTransaction) this.#database.exec('ROLLBACK');
      this.#reloadIfDoubtful();
      throw error;
    }
  }

  /** Without its flush a commit in the log outlives the process only, whose pages the system keeps. */
  #demand(outlives: Outlives): void {
    if (outlives === this.#demanded) return;
    this.#database.pragma(`synchronous = ${outlives === 'power-cut' ? 'FULL' : 'NORMAL'}`);
    this.#demanded = outlives;
  }

  #outcomeOf(change: () => unknown): Outcome {
    try {
      return { value: this.#alone(change) };
    } catch (error) {
      // SQLite gives up the whole transaction when the disk fails: then nothing of the batch may count.
      if (!this.#database.inTransaction) throw error;
      if (error instanceof Sqlite.SqliteError) this.#mirrorsDoubtful = true;
      return { error: asStateError(error, this.#directory) };
    }
  }

  #reloadIfDoubtful(): void {
    if (!this.#mirrorsDoubtful) return;
    for (const reload of this.#reloads) reload();
    this.#mirrorsDoubtful = false;
  }
}
