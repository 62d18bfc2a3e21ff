import PQueue from 'p-queue';
import type { Pool, PoolClient } from 'pg';
import { type Clock, elapsedMs } from '../../../util/clock.ts';
import { DatabaseAwayError, isConnectionLost } from '../../postgres/away.ts';
import { Batches } from '../../postgres/batches.ts';
import { sqlStateOf } from '../../postgres/errors.ts';
import { inConnection, whileConnectionsFail } from './connections.ts';
import { LostNamespaceError } from './lost-namespace.ts';
import type { NamespaceRow } from './namespace-change.ts';
import { beginWithFreeLocks, beginWithLock, markOf } from './namespace-rows.ts';
import { type NewCommit, storeCommits } from './stored-commits.ts';

/** How long a commit waits for those of other processes before the next attempt, in ms. */
const LOCK_WAIT_MS = 1000;

/** Maximum number of namespaces in one transaction. */
const NAMESPACES_MAX = 64;

/** Work after which a transaction takes no further namespace, in ms: all of them stay locked until its end. */
const WORK_MS_MAX = 30;

/** Rows and bytes beyond which a commit goes alone: the others would wait for it. */
const ROWS_MAX = 200;
const BYTES_MAX = 1024 * 1024;

/** Commits that go alone at the same time. Each may wait for a lock, with a connection that other calls need. */
const ALONE_MAX = 4;

/** A COMMIT without an answer of the database. */
class CommitInDoubt extends Error {
  override readonly name = 'CommitInDoubt';

  constructor(cause: unknown) {
    super('a commit has no answer', { cause });
  }
}

/** The next commit of a namespace. */
export interface Turn {
  readonly ns: number;
  /** Whether `prepare` needs nothing of the database. */
  readonly isUpToDate: (locked: NamespaceRow) => boolean;
  /** Makes the commit while the namespace is locked. Returns `undefined` if there is nothing to store. */
  readonly prepare: (client: PoolClient, locked: NamespaceRow) => Promise<NewCommit | undefined>;
}

interface Waiting extends Turn {
  readonly resolve: () => void;
  readonly reject: (failure: unknown) => void;
}

/** What has become of the turns of a shared transaction. */
interface Shares {
  /** Those whose commits it has. */
  readonly taken: Set<Waiting>;
  /** Those for which it had no time. */
  readonly late: Set<Waiting>;
}

/**
 * Commits to namespaces. Those that wait at the same time share a transaction, because its round trips, its statement and its
 * flush cost more than their rows. What is large, has to wait, or fails together goes alone, so that no namespace suffers
 * from another one.
 */
export class JointCommits {
  readonly #turns: Batches<Waiting>;
  readonly #alone = new PQueue({ concurrency: ALONE_MAX });

  constructor(
    private readonly pool: Pool,
    private readonly clock: Clock,
  ) {
    this.#turns = new Batches(NAMESPACES_MAX, (turns) => this.#commitAll(turns));
  }

  /**
   * Resolves once the commit of a namespace is durable. May call `prepare` twice. Throws what it throws, SQLSTATE 55P03 when
   * the lock is not free in time, and `DatabaseAwayError` if nobody can tell whether it is durable.
   */
  commit(turn: Turn): Promise<void> {
    return new Promise((resolve, reject) => this.#turns.add({ ...turn, resolve, reject }));
  }

  /** Never rejects. */
  async #commitAll(turns: readonly Waiting[]): Promise<void> {
    const shares = { taken: new Set<Waiting>(), late: new Set<Waiting>() };
    const isAlone = turns.length === 1;
    try {
      await this.#transacted((client) => this.#prepareShares(client, turns, shares));
      for (const { resolve } of shares.taken) resolve();
    } catch (failure) {
      // Callers repeat what a lost connection has prevented. Alone they would wait for each other.
      const isLost = isConnectionLost(failure) && !(failure instanceof DatabaseAwayError);
      for (const turn of isLost ? turns : []) if (!shares.late.has(turn)) shares.taken.add(turn);
      const isOver = isAlone || isLost || failure instanceof CommitInDoubt;
      for (const { reject } of isOver ? shares.taken : []) reject(reasonOf(failure));
      if (!isOver) shares.taken.clear();
    }
    for (const turn of turns)
      if (shares.late.has(turn)) this.#turns.add(turn);
      else if (!shares.taken.has(turn))
        void this.#alone
          .add(() => this.#transacted((client) => prepareAlone(client, turn)))
          .then(turn.resolve, (failure: unknown) => turn.reject(reasonOf(failure)));
  }

  /** Prepares the commits to those namespaces that can be locked at once, and tells what has become of the turns. */
  async #prepareShares(
    client: PoolClient,
    turns: readonly Waiting[],
    { taken, late }: Shares,
  ): Promise<readonly NewCommit[]> {
    const isShared = turns.length > 1;
    const locked = await beginWithFreeLocks(
      client,
      turns.map(({ ns }) => ns),
      LOCK_WAIT_MS,
    );
    const started = this.clock.instant();
    const made: NewCommit[] = [];
    for (const turn of turns) {
      const namespace = locked.get(turn.ns);
      if (!namespace || (isShared && !turn.isUpToDate(namespace))) continue;
      if (elapsedMs(this.clock, started) >= WORK_MS_MAX) {
        late.add(turn);
        continue;
      }
      // Also one that fails: alone it would fail again.
      if (!isShared) taken.add(turn);
      const commit = await turn.prepare(client, namespace);
      if (isShared && commit && isLarge(commit)) continue;
      if (commit) made.push(commit);
      taken.add(turn);
    }
    return made;
  }

  /** Stores and commits what `prepare` makes in a transaction that it begins. Throws `CommitInDoubt` if the end is unknown. */
  async #transacted(prepare: (client: PoolClient) => Promise<readonly NewCommit[]>): Promise<void> {
    let made: readonly NewCommit[] = [];
    try {
      await inConnection(this.pool, async (client) => {
        made = await prepare(client);
        if (made.length > 0) await storeCommits(client, made);
        await commit(client);
      });
    } catch (failure) {
      if (!(failure instanceof CommitInDoubt)) throw failure;
      // What is true of one of them is true of all.
      if (!made[0] || !(await this.#isMade(made[0]))) throw failure.cause;
    }
  }

  /** Returns whether a commit without an answer has taken place. Throws `CommitInDoubt` if that cannot be known. */
  async #isMade({ namespace: { id, version, mark } }: NewCommit): Promise<boolean> {
    const ask = () =>
      inConnection(this.pool, async (client) => {
        // The lock is free once the lost connection's transaction has ended.
        await beginWithLock(client, id, LOCK_WAIT_MS);
        const isMade = (await markOf(client, id, version)) === mark;
        await client.query('COMMIT');
        return isMade;
      });
    try {
      return await whileConnectionsFail(this.clock, ask, () => true);
    } catch (failure) {
      throw new CommitInDoubt(failure);
    }
  }
}

async function prepareAlone(client: PoolClient, { ns, prepare }: Turn): Promise<readonly NewCommit[]> {
  const locked = await beginWithLock(client, ns, LOCK_WAIT_MS);
  if (!locked) throw new LostNamespaceError(ns);
  const made = await prepare(client, locked);
  return made ? [made] : [];
}

async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT').catch((failure: unknown) => {
    throw sqlStateOf(failure) === '' || isConnectionLost(failure) ? new CommitInDoubt(failure) : failure;
  });
  if (command !== 'COMMIT') throw new Error('the database has not committed');
}

function isLarge({ recorded: { rows, gone } }: NewCommit): boolean {
  let count = 0;
  for (const some of [...rows.values(), ...gone.values()]) count += some.length;
  // A row of a small block ends with its bytes.
  const bytes = (rows.get('block') ?? []).map((row) => row.at(-1));
  const sizes = bytes.map((value) => (value instanceof Uint8Array ? value.length : 0));
  return count > ROWS_MAX || sizes.reduce((sum, size) => sum + size, 0) > BYTES_MAX;
}

function reasonOf(failure: unknown): unknown {
  return failure instanceof CommitInDoubt ? failure.cause : failure;
}
