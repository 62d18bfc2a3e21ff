import { setImmediate as otherCalls } from 'node:timers/promises';
import type { Clock } from '../../../util/clock.ts';
import { waitAtMost } from '../../../util/wait.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { Committer, Transaction } from '../committer.ts';
import type { NumberRange, Ticks } from '../feed/ticks.ts';
import { StorageError } from '../storage.ts';
import {
  areDependent,
  ENTRIES_MAX,
  foldersAbove,
  isAtOrBelow,
  isLarge,
  keysAsked,
  type Pair,
  planned,
  type Relocation,
  type RelocationOptions,
  refused,
  relocateEntry,
  under,
} from './entry-relocation.ts';
import type { Store } from './entry-writes.ts';
import type { Place } from './places.ts';
import { type EntryRow, keyOf } from './tree-rows.ts';

/** Rows that one transaction creates, and pairs of a batch examined without a pause: some 20 ms. */
const STEP_ROWS = 50;

/**
 * How far ahead of the clock each attempt reserves its numbers, in ms; an attempt must be done by then. The next
 * attempt follows when the time was too short, or when others changed its source or target.
 */
const RESERVED_AHEAD_MS = [60_000, 600_000, 6_000_000];

/** How long a large relocation waits for earlier ones, in ms. */
const TURN_WAIT_MS_MAX = 30_000;

/** The effects of a move or copy that can be determined before anything changes. */
interface Plan {
  readonly relocations: readonly Relocation[];
  /** The path of each target, with the letter case of its parents. */
  readonly paths: readonly string[];
}

/** A row of the source, and its target. */
interface Step {
  readonly row: EntryRow;
  readonly place: Place;
  readonly path: string;
}

/** A large move or copy whose rows are being created. */
interface Staged extends Plan {
  readonly ns: number;
  readonly options: RelocationOptions;
  readonly steps: readonly Step[];
  readonly range: NumberRange;
  /** The last number that was issued before its source was read. */
  readonly since: number;
}

/**
 * Moves and copies. A small one shares a transaction with others. A large one creates hidden rows step by step
 * (`stagings.ts`); a last small transaction publishes them, and removes the source of a move, unless others have
 * changed the source or the target meanwhile. Large ones take turns.
 */
export class Relocations {
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: Store,
    private readonly committer: Committer,
    private readonly reserve: Reserve,
    private readonly ticks: Ticks,
    private readonly clock: Clock,
    private readonly stepRows = STEP_ROWS,
  ) {}

  /** Moves or copies several entries as one change, one after the other. Throws the first refusal. */
  async together(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<EntryRow[]> {
    const moved = await this.committer.run((transaction) => this.#small(transaction, ns, pairs, options));
    return moved ?? (await this.large(ns, pairs, options));
  }

  /** Like `together` for one pair, within a transaction; returns `undefined` when it is large. */
  smallOne(
    transaction: Transaction,
    ns: number,
    pair: Pair,
    options: RelocationOptions,
  ): EntryRow | undefined {
    if (isLarge(this.store, ns, [pair], this.stepRows)) return undefined;
    return relocateEntry(this.store, transaction, ns, pair, options);
  }

  #small(
    transaction: Transaction,
    ns: number,
    pairs: readonly Pair[],
    options: RelocationOptions,
  ): EntryRow[] | undefined {
    if (isLarge(this.store, ns, pairs, this.stepRows)) return undefined;
    return pairs.map((pair) => relocateEntry(this.store, transaction, ns, pair, options));
  }

  /** Like `together`, in many transactions, with effects that become visible in the last one. */
  large(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<EntryRow[]> {
    const before = this.#turn;
    const done = this.#within(before).then(() => this.#large(ns, pairs, options));
    // When this one stops waiting, the next one still waits for those before it.
    this.#turn = Promise.allSettled([before, done]).then(() => undefined);
    return done;
  }

  /** Waits for a turn, at most `TURN_WAIT_MS_MAX`. */
  async #within(turn: Promise<unknown>): Promise<void> {
    await waitAtMost(this.clock, TURN_WAIT_MS_MAX, turn, () => {
      throw tooBusy();
    });
  }

  async #large(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<EntryRow[]> {
    for (const aheadMs of RESERVED_AHEAD_MS) {
      const moved = await this.#try(ns, pairs, options, aheadMs);
      if (moved) return moved;
    }
    throw tooBusy();
  }

  /** Returns the moved or copied entries; `undefined` when others interfered. */
  async #try(
    ns: number,
    pairs: readonly Pair[],
    options: RelocationOptions,
    aheadMs: number,
  ): Promise<EntryRow[] | undefined> {
    // Rows of an interrupted relocation take space that this one may need.
    await this.store.stagings.work(this.reserve);
    this.#expectOpen();
    const since = this.ticks.last(ns);
    const plan = await this.#plan(ns, pairs, options);
    const steps = await this.#stepsOf(ns, plan);
    const range = this.ticks.reserve(ns, steps.length, aheadMs);
    const staged = { ...plan, ns, options, steps, range, since };
    return await this.store.stagings.filling(range, async () => {
      for (let start = 0; start < steps.length; start += this.stepRows)
        if (!(await this.committer.run((transaction) => this.#stage(transaction, staged, start))))
          return undefined;
      return await this.committer.run((transaction) => this.#publish(transaction, staged));
    });
  }

  /**
   * Plans all pairs. Throws `duplicated_or_nested_paths` when one pair depends on another: its rows cannot be
   * determined in advance.
   */
  async #plan(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<Plan> {
    const plan = await this.#planned(ns, pairs, options).catch((failure: unknown) => {
      const asked = pairs.length > 1 ? keysAsked(this.store, ns, pairs) : [];
      throw areDependent(asked, options) ? refused('duplicated_or_nested_paths') : failure;
    });
    if (pairs.length > 1 && areDependent(keyPairsOf(plan), options))
      throw refused('duplicated_or_nested_paths');
    return plan;
  }

  async #planned(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<Plan> {
    const relocations: Relocation[] = [];
    const paths: string[] = [];
    const made = new Map<string, string>();
    for (const pair of pairs) {
      const { source, target } = planned(this.store, ns, pair, options);
      relocations.push({ source, target });
      paths.push(target ? this.store.tree.pathAt(ns, target, made) : source.path);
      if (relocations.length % this.stepRows === 0) await this.#otherCalls();
    }
    return { relocations, paths };
  }

  /** Returns all rows to create, parents before their children. Throws `too_many_files`. */
  async #stepsOf(ns: number, { relocations, paths }: Plan): Promise<Step[]> {
    const steps: Step[] = [];
    for (const [index, { source, target }] of relocations.entries()) {
      const path = paths[index];
      if (!target || path === undefined) continue;
      steps.push({ row: source, place: target, path });
      if (source.revision !== null) continue;
      for (const rows of this.store.tree.entriesBelow(ns, keyOf(source))) {
        for (const row of rows)
          steps.push({
            row,
            place: under(row, source, target),
            path: path + row.path.slice(source.path.length),
          });
        if (steps.length > ENTRIES_MAX + 1) break;
        await this.#otherCalls();
      }
      if (steps.length > ENTRIES_MAX) throw refused('too_many_files');
    }
    return steps;
  }

  /** Creates the next rows. Returns whether all of them could be created. */
  #stage(transaction: Transaction, { options, steps, range }: Staged, start: number): boolean {
    const { copy } = options;
    const { stagings } = this.store;
    if (start === 0 ? !stagings.begin(range, copy) : !stagings.has(range)) return false;
    const next = steps.slice(start, start + this.stepRows);
    return this.store.stagings.charging(range, () =>
      next.every(({ row, place, path }, index) => {
        const seq = range.first + start + index;
        return this.store.tree.stage(transaction, row, { place, path, seq, copy });
      }),
    );
  }

  #publish(transaction: Transaction, staged: Staged): EntryRow[] | undefined {
    const { ns, relocations, options, range } = staged;
    if (!this.#isUntouched(staged)) return undefined;
    const { tree } = this.store;
    for (const { source, target } of relocations) {
      if (target && !options.copy) tree.remove(transaction, source, { forever: false, moved: true });
    }
    for (const target of firstOfEachFolder(relocations)) tree.makeParents(transaction, ns, target);
    this.store.stagings.publish(range);
    this.ticks.useUp(range);
    return relocations.map(({ source, target }) => {
      if (!target) return source;
      transaction.changes.push({ ns, key: target.key, tree: true });
      const moved = tree.find(ns, target);
      if (!moved) throw new Error('an entry does not exist right after it was published');
      return moved;
    });
  }

  /** Returns whether nothing has changed at, below or above the sources and targets since they were read. */
  #isUntouched({ ns, relocations, steps, range, since }: Staged): boolean {
    if (!this.ticks.isBelow(range) || this.store.stagings.count(range) !== steps.length) return false;
    const keys = new Set(
      keyPairsOf({ relocations }).flatMap(({ source, target }) => [source, target ?? source]),
    );
    const above = new Set([...keys].flatMap((key) => [...foldersAbove(key)]));
    for (const { key } of this.store.stagings.changes(ns, since, this.ticks.last(ns)))
      if (above.has(key) || isAtOrBelow(key, keys)) return false;
    return true;
  }

  async #otherCalls(): Promise<void> {
    await otherCalls();
    this.#expectOpen();
  }

  #expectOpen(): void {
    if (this.committer.isClosed) throw new Error('the storage is closed');
  }
}

/**
 * Returns the first target in each folder, as files often go to one folder; it determines the spelling of a new folder.
 */
function firstOfEachFolder(relocations: readonly Relocation[]): Iterable<Place> {
  const first = new Map<string, Place>();
  for (const { target } of relocations)
    if (target && !first.has(target.parent)) first.set(target.parent, target);
  return first.values();
}

function keyPairsOf({
  relocations,
}: Pick<Plan, 'relocations'>): { readonly source: string; readonly target: string | undefined }[] {
  return relocations.map(({ source, target }) => ({ source: keyOf(source), target: target?.key }));
}

function tooBusy(): StorageError {
  return new StorageError({ kind: 'write', tag: 'too_many_write_operations' });
}
