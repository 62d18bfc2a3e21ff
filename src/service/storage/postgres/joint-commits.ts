import type { Pool, PoolClient } from 'pg';
import { type Clock, elapsedMs } from '../../../util/clock.ts';
import { isConnectionLost } from '../../postgres/away.ts';
import { Batches } from '../../postgres/batches.ts';
import { sqlStateOf } from '../../postgres/errors.ts';
import { inConnection } from './connections.ts';
import type { NamespaceRow } from './namespace-change.ts';
import { beginWithFreeLocks, beginWithLock } from './namespace-rows.ts';
import { type NewCommit, storeCommits } from './stored-commits.ts';

/** How long a commit waits for those of other processes before the next attempt, in ms. */
export const LOCK_WAIT_MS = 1000;

/** Maximum number of namespaces in one transaction. */
const NAMESPACES_MAX = 64;

/** Work after which a transaction takes no further namespace, in ms: all of them stay locked until its end. */
const WORK_MS_MAX = 30;

/** A COMMIT without an answer of the database. */
export class CommitInDoubt extends Error {
  override readonly name = 'CommitInDoubt';

  constructor(cause: unknown) {
    super('a commit has no answer', { cause });
  }
}

/** The next commit of a namespace. */
export interface Turn {
  readonly ns: number;
  /** Makes the commit while the namespace is locked. Returns `undefined` if there is nothing to store. */
  readonly prepare: (client: PoolClient, locked: NamespaceRow) => Promise<NewCommit | undefined>;
}

interface Waiting extends Turn {
  readonly resolve: () => void;
  readonly reject: (failure: unknown) => void;
}

/**
 * Commits to namespaces. Those that wait at the same time share a transaction, because its round trips, its statement and its
 * flush cost more than their rows. What fails together is repeated alone, so that no namespace suffers from another one.
 */
export class JointCommits {
  readonly #turns: Batches<Waiting>;

  constructor(
    private readonly pool: Pool,
    private readonly clock: Clock,
  ) {
    this.#turns = new Batches(NAMESPACES_MAX, (turns) => this.#commitAll(turns));
  }

  /**
   * Resolves once the commit of a namespace is durable. May call `prepare` twice. Throws what it throws, SQLSTATE 55P03 when
   * the lock is not free in time, and `CommitInDoubt`.
   */
  commit(turn: Turn): Promise<void> {
    return new Promise((resolve, reject) => this.#turns.add({ ...turn, resolve, reject }));
  }

  /** Never rejects. */
  async #commitAll(turns: readonly Waiting[]): Promise<void> {
    // A lock may not be free for a while, for which the others do not wait.
    for (const turn of await this.#commitTogether(turns))
      void this.#commitAlone(turn).then(turn.resolve, turn.reject);
  }

  #commitAlone({ ns, prepare }: Turn): Promise<void> {
    return inConnection(this.pool, async (client) => {
      const locked = await beginWithLock(client, ns, LOCK_WAIT_MS);
      if (!locked) throw new Error(`namespace ${ns} is no longer in the database`);
      const made = await prepare(client, locked);
      if (made) await storeCommits(client, [made]);
      await commit(client);
    });
  }

  /** Commits what can be committed now, and returns the turns that have to go alone. */
  async #commitTogether(turns: readonly Waiting[]): Promise<readonly Waiting[]> {
    const taken = new Set<Waiting>();
    try {
      await inConnection(this.pool, (client) => this.#prepareAndCommit(client, turns, taken));
      for (const { resolve } of taken) resolve();
    } catch (failure) {
      const isShared = turns.length > 1;
      if (isShared && !(failure instanceof CommitInDoubt)) return turns;
      for (const { reject } of isShared ? taken : turns) reject(failure);
      if (!isShared) return [];
    }
    return turns.filter((turn) => !taken.has(turn));
  }

  /** Adds those of `turns` to `taken` whose namespaces could be locked, in the time that a transaction has. */
  async #prepareAndCommit(client: PoolClient, turns: readonly Waiting[], taken: Set<Waiting>): Promise<void> {
    const numbers = turns.map(({ ns }) => ns);
    const locked = await beginWithFreeLocks(client, numbers);
    const started = this.clock.instant();
    const made: NewCommit[] = [];
    for (const turn of turns) {
      const namespace = locked.get(turn.ns);
      if (!namespace || elapsedMs(this.clock, started) >= WORK_MS_MAX) continue;
      const own = await turn.prepare(client, namespace);
      if (own) made.push(own);
      taken.add(turn);
    }
    if (made.length > 0) await storeCommits(client, made);
    await commit(client);
  }
}

async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT').catch((failure: unknown) => {
    throw sqlStateOf(failure) === '' || isConnectionLost(failure) ? new CommitInDoubt(failure) : failure;
  });
  if (command !== 'COMMIT') throw new Error('the database has not committed');
}
