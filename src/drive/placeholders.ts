import { randomUUID } from 'node:crypto';
import type { Hold, Holds } from '../state/placeholders.ts';
import { type Clock, type Instant, instantIn, LONG_AGO, remainingMs } from '../util/clock.ts';
import { smallest } from '../util/extremes.ts';
import type { Log } from '../util/log.ts';
import { keyOf, nameOf, type Path, ROOT, relocate } from '../util/path.ts';
import { Alarm, retryPauseMs } from '../util/wait.ts';
import type { FileEntry } from './files.ts';

export interface HeldFilesParts {
  readonly store: Holds;
  readonly clock: Clock;
  readonly log: Log;
  /** Makes the held file a real one, or finds that the service has one already; then the hold is forgotten. */
  readonly commit: (hold: Hold) => Promise<void>;
}

/** After a commit that failed, until the next try; doubled each time. */
const RETRY_PAUSES = { firstMs: 5_000, maxMs: 600_000 };

/** The longest wait that is believed of another gateway's hold: its clock and ours may differ. */
const FOREIGN_HOLD_MS_MAX = 3_600_000;

const ID = 'held:';

interface Due {
  readonly path: Path;
  readonly until: Instant;
  /** Commits of it that failed; none when left out. */
  readonly failures?: number;
}

/**
 * Empty files that were acknowledged and wait for the body that is about to follow: the first half of a
 * create by Finder and Explorer. Those of which no body came are committed when they are due.
 */
export class HeldFiles {
  readonly #due = new Map<string, Due>();
  /** Held files whose body is on its way, or that are being replaced: how many do so. */
  readonly #taken = new Map<string, number>();
  readonly #commits = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  readonly #alarm: Alarm;
  #running: Promise<void> = Promise.resolve();

  constructor(private readonly parts: HeldFilesParts) {
    this.#alarm = new Alarm(parts.clock);
  }

  get count(): number {
    return this.#due.size;
  }

  get(path: Path): Promise<Hold | undefined> {
    return this.parts.store.get(path);
  }

  async in(folder: Path): Promise<readonly FileEntry[]> {
    return (await this.parts.store.in(folder)).map(heldEntry);
  }

  within(path: Path): Promise<readonly Hold[]> {
    return this.parts.store.within(path);
  }

  async make(path: Path, modifiedMs: number, holdMs: number): Promise<FileEntry> {
    const unique = randomUUID();
    return this.keep({ path, id: `${ID}${unique}`, rev: `held-${unique}`, modifiedMs }, holdMs);
  }

  /** Notes the hold, or what has changed of it, and holds the file for `holdMs` from now. */
  async keep(hold: Omit<Hold, 'untilMs'>, holdMs: number): Promise<FileEntry> {
    const { store, clock } = this.parts;
    const until = instantIn(clock, holdMs);
    await store.put({ ...hold, untilMs: clock.now() + holdMs });
    this.#due.set(keyOf(hold.path), { path: hold.path, until });
    this.#alarm.ring();
    return heldEntry(hold);
  }

  /** How long the file is still held, in ms. */
  remainingMs({ path, untilMs }: Hold): number {
    const { clock } = this.parts;
    const due = this.#due.get(keyOf(path));
    const leftMs = due ? remainingMs(clock, due.until) : Math.min(FOREIGN_HOLD_MS_MAX, untilMs - clock.now());
    return Math.max(0, leftMs);
  }

  async forget(path: Path): Promise<void> {
    await this.parts.store.forget(path);
    this.#due.delete(keyOf(path));
  }

  /** What is held at `from` and below is held at `to` from now on. */
  async move(from: Path, to: Path): Promise<void> {
    for (const hold of await this.within(from)) {
      await this.keep({ ...hold, path: relocate(hold.path, from, to) }, this.remainingMs(hold));
      await this.forget(hold.path);
    }
  }

  /** While `work` goes on, what is held at `path` and below is not committed. */
  async keepBack<T>(path: Path, work: () => Promise<T>): Promise<T> {
    const keys = (await this.within(path)).map((hold) => keyOf(hold.path));
    for (const key of keys) this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1);
    try {
      await Promise.allSettled(keys.map((key) => this.#commits.get(key)));
      return await work();
    } finally {
      for (const key of keys) this.#release(key);
      this.#alarm.ring();
    }
  }

  /** Commits what is held at `path`, if anything, unless its body is on its way. */
  async settle(path: Path): Promise<void> {
    const key = keyOf(path);
    if (this.#taken.has(key)) return;
    const commit = this.#commits.get(key) ?? this.#commit(path).finally(() => this.#commits.delete(key));
    this.#commits.set(key, commit);
    await commit;
  }

  /** Commits what is held at `path` and below. */
  async settleWithin(path: Path): Promise<void> {
    const holds = await this.within(path);
    await Promise.all(holds.map((hold) => this.settle(hold.path)));
  }

  /** Begins to commit what is due, first of all what a kill left behind. */
  async start(): Promise<void> {
    for (const { path } of await this.within(ROOT)) this.#due.set(keyOf(path), { path, until: LONG_AGO });
    this.#running = this.#run(this.#stop.signal);
  }

  /** Commits all that is held; what cannot be committed now is when davgate starts again. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await Promise.allSettled([...this.#due.values()].map(({ path }) => this.settle(path)));
  }

  #release(key: string): void {
    const others = (this.#taken.get(key) ?? 1) - 1;
    if (others > 0) this.#taken.set(key, others);
    else this.#taken.delete(key);
  }

  async #commit(path: Path): Promise<void> {
    const key = keyOf(path);
    const due = this.#due.get(key);
    try {
      const hold = await this.get(path);
      if (hold) await this.parts.commit(hold);
      // Another gateway has committed or removed it; here it would be due for ever.
      else if (this.#due.get(key) === due) this.#due.delete(key);
    } catch (error) {
      this.parts.log.warn('an empty file that was held back is not committed yet', { reason: String(error) });
      const failures = (due?.failures ?? 0) + 1;
      this.#due.set(key, {
        path,
        until: instantIn(this.parts.clock, retryPauseMs(RETRY_PAUSES, failures)),
        failures,
      });
      throw error;
    }
  }

  async #run(stop: AbortSignal): Promise<void> {
    const { clock } = this.parts;
    while (!stop.aborted) {
      const waiting = [...this.#due].filter(([key]) => !this.#taken.has(key)).map(([, due]) => due);
      const due = waiting.filter(({ until }) => until <= clock.instant());
      if (due.length > 0) {
        await Promise.all(due.map(({ path }) => this.settle(path).catch(() => {})));
        continue;
      }
      const leftMs = smallest(waiting.map(({ until }) => remainingMs(clock, until)));
      await this.#alarm.sleep(leftMs, stop);
    }
  }
}

/** A held file as it is shown. */
export function heldEntry({ path, id, rev, modifiedMs }: Omit<Hold, 'untilMs'>): FileEntry {
  const name = nameOf(path);
  return { kind: 'file', id, path, name, rev, sizeBytes: 0, modifiedMs, committedMs: modifiedMs };
}

export function isHeld(entry: { readonly id: string }): boolean {
  return entry.id.startsWith(ID);
}
