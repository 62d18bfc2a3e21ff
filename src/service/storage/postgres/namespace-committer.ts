import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import type { Clock } from '../../../util/clock.ts';
import { errorCodeOf } from '../../../util/error-code.ts';
import { type ChangeOutcome, commitGroup } from '../../../util/sqlite/group-commit.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { DatabaseAwayError } from '../../postgres/away.ts';
import { sqlStateOf } from '../../postgres/errors.ts';
import { answered, CommitQueue, type Waiting } from '../commit-queue.ts';
import {
  type Committer,
  newTransaction,
  type Operation,
  type Transaction,
  withoutTrace,
} from '../committer.ts';
import { asRefusal } from '../errors.ts';
import type { Ticks } from '../feed/ticks.ts';
import { ChangeRecorder, type Recorded } from './change-recorder.ts';
import { whileConnectionsFail } from './connections.ts';
import type { JointCommits } from './joint-commits.ts';
import type { CopiedState, NamespaceChange, NamespaceRow } from './namespace-change.ts';
import type { NamespaceCopy } from './namespace-copy.ts';
import { changeSince, isFarBehind } from './namespace-rows.ts';
import { inSnapshot } from './snapshot.ts';

/**
 * Batch entries and changed paths of one transaction, unless the time for it ends before: more than in a database of this
 * process, because each transaction takes three round trips.
 */
const ENTRIES_MAX = 500;
const CHANGES_MAX = 1000;

/** SQLSTATE of a lock that was not free in time. */
const LOCK_NOT_AVAILABLE = '55P03';

export interface NamespaceCommitterDeps {
  readonly pool: Pool;
  readonly joint: JointCommits;
  readonly database: SqliteDatabase;
  readonly copy: NamespaceCopy;
  readonly ticks: Ticks;
  readonly clock: Clock;
  readonly committed: (transaction: Transaction) => void;
  /** Takes over a change that another process has made. */
  readonly take: (change: NamespaceChange) => void;
  readonly waitMs?: number | undefined;
  readonly removedRows?: number | undefined;
}

/** The copy is too far behind to catch up while the namespace is locked. */
class FarBehindError extends Error {
  override readonly name = 'FarBehindError';
}

/** What a trial in the copy has shown. */
interface Trial {
  readonly transaction: Transaction;
  readonly outcomes: readonly ChangeOutcome[];
  readonly recorded: Recorded;
  /** The namespace after the commit. */
  readonly namespace: NamespaceRow;
}

/**
 * Commits to a namespace that other processes commit to as well. While it holds the lock of the namespace's row, its copy
 * is brought up to date, the operations run in the copy on trial, and the rows that they have changed there are stored.
 * The copy takes them over once they are durable.
 */
export class NamespaceCommitter implements Committer {
  readonly entriesMax = ENTRIES_MAX;
  readonly #queue: CommitQueue;
  readonly #recorder: ChangeRecorder;

  constructor(private readonly deps: NamespaceCommitterDeps) {
    this.#queue = new CommitQueue(deps.clock, deps.waitMs, (batch) => this.#commit(batch));
    this.#recorder = new ChangeRecorder(deps.database, deps.copy.id);
  }

  run<T>(operation: Operation<T>, until?: AbortSignal): Promise<T> {
    return this.#queue.run(operation, until);
  }

  get isClosed(): boolean {
    return this.#queue.isClosed;
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #commit(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    try {
      const { transaction, outcomes } = await whileConnectionsFail(this.deps.clock, () =>
        this.#tryCaughtUp(batch),
      );
      this.deps.committed(transaction);
      return answered(batch, outcomes);
    } catch (failure) {
      // Those who may wait longer do.
      if (sqlStateOf(failure) === LOCK_NOT_AVAILABLE) return batch;
      // An operation that cannot be stored must not fail the others.
      if (batch.length > 1 && !(failure instanceof DatabaseAwayError)) {
        const left: Waiting[] = [];
        for (const waiting of batch) for (const one of await this.#commit([waiting])) left.push(one);
        return left;
      }
      for (const { reject } of batch) reject(asRefusal(failure));
      return [];
    }
  }

  /** Like `#try`, however far behind the copy is: during a long upload others may have made any number of commits. */
  async #tryCaughtUp(batch: readonly Waiting[]): Promise<Trial> {
    for (;;) {
      try {
        return await this.#try(batch);
      } catch (failure) {
        if (!(failure instanceof FarBehindError)) throw failure;
        await this.#catchUpUnlocked();
      }
    }
  }

  /** Commits as many operations as fit in one transaction, at least one. */
  async #try(batch: readonly Waiting[]): Promise<Trial> {
    const { joint, copy } = this.deps;
    const mark = randomUUID();
    let trial: Trial | undefined;
    const prepare = async (client: PoolClient, locked: NamespaceRow) => {
      await this.#catchUp(client, locked);
      const tried = this.#onTrial(batch);
      const isChanged = changes(tried, locked);
      trial = { ...tried, namespace: isChanged ? { ...tried.namespace, mark } : locked };
      return isChanged ? trial : undefined;
    };
    const isUpToDate = (locked: NamespaceRow) => copy.has(locked);
    await joint.commit({ ns: copy.id, isUpToDate, prepare });
    if (!trial) throw new Error(`a commit to namespace ${copy.id} has not been prepared`);
    this.#takeOver(trial);
    return trial;
  }

  /** Applies a commit to the copy. What is committed must not fail any more. */
  #takeOver({ namespace, recorded }: Trial): void {
    const { copy } = this.deps;
    // A reader may have been told of the commit by the database before.
    if (copy.version !== namespace.version - 1) return;
    try {
      copy.apply({ namespace, ...recorded });
    } catch {
      copy.giveUp();
    }
  }

  async #catchUp(client: PoolClient, locked: NamespaceRow): Promise<void> {
    const { copy } = this.deps;
    if (copy.has(locked)) return;
    if (isFarBehind(locked, copy.state)) throw new FarBehindError();
    await this.#takeSince(client, locked, copy.state);
  }

  /** Brings the copy up to date while others commit. */
  async #catchUpUnlocked(): Promise<void> {
    const { pool, copy } = this.deps;
    // As it is before the snapshot, like in `OpenNamespace`.
    const before = copy.state;
    await inSnapshot(pool, copy.id, (client, namespace) => this.#takeSince(client, namespace, before));
  }

  async #takeSince(client: PoolClient, namespace: NamespaceRow, since: CopiedState): Promise<void> {
    const { copy, take } = this.deps;
    const change = await changeSince(client, namespace, since);
    if (!change) {
      copy.giveUp();
      throw new DatabaseAwayError(`the copy of namespace ${copy.id} has to be loaded again`);
    }
    take(change);
  }

  /** Runs operations in the copy, and undoes them there. */
  #onTrial(batch: readonly Waiting[]): Trial {
    const { database, copy, ticks, clock } = this.deps;
    const transaction = newTransaction(ticks, clock, clock.now(), {
      removedRows: this.deps.removedRows,
      changes: CHANGES_MAX,
    });
    let recorded: Recorded | undefined;
    let namespace = copy.namespace;
    const version = namespace.version + 1;
    let ran = 0;
    try {
      const outcomes = commitGroup(
        database,
        [
          () => this.#recorder.start(),
          ...batch.map(({ operation }) => () => {
            ran += 1;
            return withoutTrace(transaction, () => operation(transaction));
          }),
        ],
        {
          isTrial: true,
          isFull: () => ran > 0 && transaction.isFull(),
          onUndone: (error) => {
            if (errorCodeOf(error).startsWith('SQLITE_')) throw error;
          },
          beforeCommit: () => {
            ticks.store();
            recorded = this.#recorder.recorded();
            namespace = { ...copy.namespace, version };
          },
        },
      );
      if (!recorded) throw new Error('a trial has recorded nothing');
      return { transaction, outcomes: outcomes.slice(1), recorded, namespace };
    } catch (failure) {
      ticks.takeBack();
      throw failure;
    }
  }
}

/** Returns whether a trial leaves anything to store. */
function changes({ recorded, namespace }: Trial, locked: NamespaceRow): boolean {
  return (
    recorded.rows.size > 0 ||
    recorded.gone.size > 0 ||
    namespace.tick !== locked.tick ||
    namespace.usedBytes !== locked.usedBytes
  );
}
