import { setImmediate as otherCalls } from 'node:timers/promises';
import type { Reserve } from '../blocks/reserve.ts';
import type { Committer, Transaction } from '../committer.ts';
import type { NumberRange, Ticks } from '../feed/ticks.ts';
import { StorageError } from '../storage.ts';
import type { Place } from './names.ts';
import {
  ENTRIES_MAX,
  isLarge,
  type Pair,
  planned,
  type Relocation,
  type RelocationOptions,
  refused,
  relocateEntry,
  under,
} from './relocation.ts';
import { type EntryRow, keyOf } from './tree-rows.ts';
import type { Store } from './writes.ts';

/** Rows that one transaction makes, and pairs of a batch looked at in a row: some 20 ms, to hold nobody up. */
const STEP_ROWS = 50;

/** How often a large one begins anew because others changed what it moves, or came to where it goes. */
const TRIES = 3;

/** What a move or copy will do, as far as it can be told before anything changes. */
interface Plan {
  readonly relocations: readonly Relocation[];
  /** Where each goes, with the letter case of its parents. */
  readonly paths: readonly string[];
}

/** A row of the source, and where it goes. */
interface Step {
  readonly row: EntryRow;
  readonly place: Place;
  readonly path: string;
}

/** A large move or copy whose rows are made. */
interface Staged extends Plan {
  readonly ns: number;
  readonly options: RelocationOptions;
  readonly steps: readonly Step[];
  readonly range: NumberRange;
  /** The last number that was given out before its source was read. */
  readonly since: number;
}

/**
 * Moves and copies. A small one is one transaction with others. A large one makes its rows hidden, step by step
 * (`stagings.ts`), and a last small transaction publishes them, and removes the source of a move, if nobody changed
 * anything of the source or came to the target meanwhile. Large ones take turns.
 */
export class Relocations {
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: Store,
    private readonly committer: Committer,
    private readonly reserve: Reserve,
    private readonly ticks: Ticks,
    private readonly stepRows = STEP_ROWS,
  ) {}

  /** Moves or copies one after the other in one change. Throws the refusal of the first that is refused. */
  async together(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<EntryRow[]> {
    const moved = await this.committer.run((transaction) => this.#small(transaction, ns, pairs, options));
    return moved ?? (await this.large(ns, pairs, options));
  }

  /** As `together`, for one, within a transaction; `undefined` when it is large. */
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

  /** As `together`, in many transactions of which the last one alone is seen. */
  large(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<EntryRow[]> {
    const done = this.#turn.then(() => this.#large(ns, pairs, options));
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #large(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<EntryRow[]> {
    for (let tries = 0; tries < TRIES; tries++) {
      const moved = await this.#try(ns, pairs, options);
      if (moved) return moved;
    }
    throw new StorageError({ kind: 'write', tag: 'too_many_write_operations' });
  }

  /** What was moved or copied; `undefined` when others came in between. */
  async #try(
    ns: number,
    pairs: readonly Pair[],
    options: RelocationOptions,
  ): Promise<EntryRow[] | undefined> {
    // What an earlier one left takes space that this one may need.
    await this.store.stagings.work(this.reserve);
    this.#expectOpen();
    const since = this.ticks.last;
    const plan = await this.#plan(ns, pairs, options);
    if (areNested(plan)) return await this.#oneByOne(ns, pairs, options);
    const steps = await this.#stepsOf(ns, plan);
    const range = this.ticks.reserve(steps.length);
    const staged = { ...plan, ns, options, steps, range, since };
    return await this.store.stagings.filling(range, async () => {
      for (let start = 0; start < steps.length; start += this.stepRows)
        if (!(await this.committer.run((transaction) => this.#stage(transaction, staged, start))))
          return undefined;
      return await this.committer.run((transaction) => this.#publish(transaction, staged));
    });
  }

  /** Each goes on from what the one before it made, so that no steps can be told beforehand: all in one transaction. */
  #oneByOne(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<EntryRow[]> {
    return this.committer.run((transaction) => {
      if (isLarge(this.store, ns, pairs, ENTRIES_MAX)) throw refused('too_many_files');
      return pairs.map((pair) => relocateEntry(this.store, transaction, ns, pair, options));
    });
  }

  async #plan(ns: number, pairs: readonly Pair[], options: RelocationOptions): Promise<Plan> {
    const relocations: Relocation[] = [];
    const paths: string[] = [];
    for (const pair of pairs) {
      const { source, target } = planned(this.store, ns, pair, options);
      relocations.push({ source, target });
      paths.push(target ? this.store.tree.pathAt(ns, target) : source.path);
      if (relocations.length % this.stepRows === 0) await this.#otherCalls();
    }
    return { relocations, paths };
  }

  /** All rows that are to be made, parents before their children. Throws `too_many_files`. */
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

  /** Makes the next rows; whether there was room for all of them. */
  #stage(transaction: Transaction, { ns, options, steps, range }: Staged, start: number): boolean {
    const { copy } = options;
    if (start === 0) this.store.stagings.begin(ns, range, copy);
    const next = steps.slice(start, start + this.stepRows);
    return this.store.stagings.charging(ns, range, () =>
      next.every(({ row, place, path }, index) => {
        const seq = range.first + start + index;
        return this.store.tree.stage(transaction, row, { place, path, seq, copy });
      }),
    );
  }

  #publish(transaction: Transaction, staged: Staged): EntryRow[] | undefined {
    const { ns, relocations, options, range } = staged;
    // Files of one folder go to one folder.
    const targets = new Map(relocations.flatMap(({ target }) => (target ? [[target.parent, target]] : [])));
    if (!this.#isUntouched(staged)) return undefined;
    const { tree } = this.store;
    for (const { source, target } of relocations) {
      if (target && !options.copy) tree.remove(transaction, source, { forever: false, moved: true });
    }
    for (const target of targets.values()) tree.makeParents(transaction, ns, target);
    this.store.stagings.publish(range);
    this.ticks.useUp(range);
    return relocations.map(({ source, target }) => {
      if (!target) return source;
      transaction.changes.push({ ns, key: target.key, tree: true });
      const moved = tree.find(ns, target);
      if (!moved) throw new Error('an entry is gone right after it was published');
      return moved;
    });
  }

  /** Whether nothing has changed at the sources and targets, below them and above them, since they were looked at. */
  #isUntouched({ ns, relocations, steps, range, since }: Staged): boolean {
    if (!this.ticks.isBelow(range) || this.store.stagings.count(ns, range) !== steps.length) return false;
    const keys = new Set(keysOf(relocations));
    const above = new Set([...keys].flatMap((key) => [...foldersAbove(key)]));
    for (const { key } of this.store.stagings.changes(ns, since, this.ticks.last))
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

/** Whether something of a plan lies in something else of it. */
function areNested({ relocations }: Plan): boolean {
  const keys = keysOf(relocations);
  const all = new Set(keys);
  return (
    all.size < keys.length || keys.some((key) => [...foldersAbove(key)].some((folder) => all.has(folder)))
  );
}

function keysOf(relocations: readonly Relocation[]): string[] {
  return relocations.flatMap(({ source, target }) => [keyOf(source), ...(target ? [target.key] : [])]);
}

function isAtOrBelow(key: string, places: ReadonlySet<string>): boolean {
  if (places.has(key)) return true;
  for (const folder of foldersAbove(key)) if (places.has(folder)) return true;
  return false;
}

/** Keys of the folders above a key, but for the root. */
function* foldersAbove(key: string): Generator<string, void, undefined> {
  for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) yield key.slice(0, end);
}
