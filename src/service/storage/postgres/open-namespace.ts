import type PQueue from 'p-queue';
import type { Pool } from 'pg';
import type { Clock } from '../../../util/clock.ts';
import type { Log } from '../../../util/log.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { assembled } from '../assembled.ts';
import { type BlockPlaces, BlockStore } from '../blocks/block-store.ts';
import { Contents } from '../blocks/contents.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { Committer } from '../committer.ts';
import { type CursorState, refused } from '../feed/cursors.ts';
import { tickAt } from '../feed/ticks.ts';
import type { RoundEnd } from '../housekeeping/housekeeping.ts';
import { localStorage, type Parts, tidy } from '../local-storage.ts';
import type { Storage } from '../storage.ts';
import { NameIndex } from '../tree/name-index.ts';
import { changesIn } from './changed-paths.ts';
import { whileConnectionsFail } from './connections.ts';
import type { JointCommits } from './joint-commits.ts';
import type { NamespaceChange } from './namespace-change.ts';
import { NamespaceCommitter } from './namespace-committer.ts';
import { NamespaceCopy } from './namespace-copy.ts';
import type { Versions } from './namespace-lookups.ts';
import { allRows, changeSince, isFarBehind, markOf, smallBytes } from './namespace-rows.ts';
import { inSnapshot } from './snapshot.ts';

/** What the namespaces of a process have in common. */
export interface NamespaceDeps {
  readonly pool: Pool;
  readonly versions: Versions;
  readonly joint: JointCommits;
  /** Copies that are being loaded, few at a time: each takes a connection for as long as that lasts. */
  readonly loads: PQueue;
  /** Tells other processes of a commit. */
  readonly told: (ns: number) => void;
  /** No block is removed through these places: a row that another process has added may not be in the copy yet. */
  readonly places: BlockPlaces;
  readonly tag: string;
  readonly cursorKey: Buffer;
  readonly mintId: (() => string) | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly commitWaitMs?: number | undefined;
  readonly removedRowsMax?: number | undefined;
  readonly stagedRowsMax?: number | undefined;
}

/** Digits of a commit's mark in a cursor: enough to tell a lost commit from another one with its number. */
const MARK_DIGITS = 8;

/** A namespace of which this process has a copy, and the storage over it. */
export class OpenNamespace {
  readonly storage: Storage;
  readonly #parts: Parts;
  readonly #copy: NamespaceCopy;
  /** Brings the copy up to date; the next one begins after it. */
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(
    readonly ns: number,
    database: SqliteDatabase,
    private readonly deps: NamespaceDeps,
  ) {
    const { pool, places, clock } = deps;
    const contents = new Contents(database, (block) =>
      whileConnectionsFail(clock, () => smallBytes(pool, ns, block.hash)),
    );
    let copy: NamespaceCopy | undefined;
    this.#parts = assembled({
      ...{ database, contents, clock, log: deps.log, mintId: deps.mintId },
      ...{ directoryTag: deps.tag, cursorKey: deps.cursorKey, stagedRowsMax: deps.stagedRowsMax },
      blocks: new BlockStore(places, contents),
      mustSearchBlocks: false,
      isCopy: true,
      lastCommit: () => ({ version: this.#copy.version ?? 0, mark: this.#copy.mark.slice(0, MARK_DIGITS) }),
      abandonedUpTo: () => tickAt(clock.now()),
      commits: (ticks, committed) => {
        // Those who wait for a change ask again, and get another copy.
        copy = new NamespaceCopy(database, new NameIndex(database), ns, () => this.#parts.watchers.endAll());
        const committer = new NamespaceCommitter({
          ...{ pool, joint: deps.joint, database, copy, ticks, clock },
          committed: (transaction) => {
            committed(transaction);
            deps.told(ns);
          },
          take: (change) => this.#take(change),
          ...{ waitMs: deps.commitWaitMs, removedRows: deps.removedRowsMax },
        });
        return { committer, reserve: withoutReserve(committer) };
      },
    });
    if (!copy) throw new Error('a namespace has no copy');
    this.#copy = copy;
    this.storage = localStorage(this.#parts);
  }

  /** Whether the copy can no longer be brought up to date: the namespace has to be opened again. */
  get isStale(): boolean {
    return this.#copy.isStale;
  }

  /** The name of the namespace, once the copy has been loaded. */
  get name(): string | undefined {
    return this.#copy.state.name;
  }

  /** The limit of the namespace as the copy has it, in bytes, once that has been loaded. */
  get limitBytes(): number | undefined {
    return this.#copy.limitBytes;
  }

  /** The size of the copy, in bytes. */
  get bytes(): number {
    return this.#copy.bytes;
  }

  /**
   * Throws `cursor/reset` if the database lacks a commit that a client has seen, because it was restored. The number of the
   * position does not show that once there are later changes.
   */
  async expectSeen({ commit: seen }: CursorState): Promise<void> {
    const { version, mark } = this.#copy;
    // A cursor from before the service was copied into a database has none, and a new namespace has no commit.
    if (!seen || seen.version === 0) return;
    const known =
      seen.version === version
        ? mark
        : await whileConnectionsFail(this.deps.clock, () => markOf(this.deps.pool, this.ns, seen.version));
    if (known?.slice(0, MARK_DIGITS) !== seen.mark) throw refused('reset');
  }

  /** Resolves when the copy has everything that was committed before the call, or is stale. Throws `DatabaseAwayError`. */
  fresh(): Promise<void> {
    if (!this.#running) return this.#start();
    // The one under way may have asked before the call.
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<void> {
    this.#next = undefined;
    // Another caller may have been first, which was after the call that waits for this.
    if (this.#running !== undefined) return this.#running;
    const running = whileConnectionsFail(this.deps.clock, () => this.#catchUp()).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #catchUp(): Promise<void> {
    const copy = this.#copy;
    if (copy.isStale) return;
    if (copy.version === undefined) return await this.deps.loads.add(() => this.#load());
    const last = await this.deps.versions.of(this.ns);
    if (last && copy.has(last)) return;
    // As it is before the snapshot: a commit of this process may reach the copy meanwhile, and not the snapshot.
    const before = copy.state;
    await inSnapshot(this.deps.pool, this.ns, async (client, namespace) => {
      const change = isFarBehind(namespace, before)
        ? undefined
        : await changeSince(client, namespace, before);
      if (change) this.#take(change);
      else copy.giveUp();
    });
  }

  /** Fills the copy. */
  async #load(): Promise<void> {
    await inSnapshot(this.deps.pool, this.ns, async (client, namespace) => {
      this.#copy.clear();
      for await (const rows of allRows(client, this.ns))
        this.#copy.apply({ namespace, rows, gone: new Map() }, false);
      this.#copy.apply({ namespace, rows: new Map(), gone: new Map() });
      this.#parts.ticks.keep(this.#parts.store.stagings.ranges);
    });
  }

  /** Takes over a change that another process has made, and wakes those who wait for it. */
  #take(change: NamespaceChange): void {
    // A commit of this process may have taken it over meanwhile.
    if ((this.#copy.version ?? 0) >= change.namespace.version) return;
    this.#copy.apply(change);
    if (change.rows.has('staging')) this.#parts.ticks.keep(this.#parts.store.stagings.ranges);
    this.#parts.watchers.notify(changesIn(change));
  }

  /** Like `Storage.tidy`, and tells how the round has ended. */
  tidy(): Promise<RoundEnd> {
    return tidy(this.#parts);
  }

  /** Ends the waits, finishes accepted work, and closes the copy. */
  close(): Promise<void> {
    return this.storage.close();
  }
}

/** Returns commits that free space without a reserve: the database is on another disk. */
function withoutReserve(committer: Committer): Reserve {
  return {
    get isClosed() {
      return committer.isClosed;
    },
    commit: (operation) => committer.run(operation),
    fill: () => Promise.resolve(),
  };
}
