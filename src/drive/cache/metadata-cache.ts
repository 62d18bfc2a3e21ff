import { isOutage } from '../../api/errors.ts';
import type { Change, Entry } from '../../api/remote.ts';
import type { Instant } from '../../util/clock.ts';
import type { Meter } from '../../util/meter.ts';
import { join, keyOf, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { waitAtMost } from '../../util/wait.ts';
import { FileError } from '../errors.ts';
import type { Listing } from '../files.ts';
import type { CachedFolder, Known } from './folder-cache.ts';
import { LocalChanges, type Ongoing, stateOf } from './local-changes.ts';
import { Lookups, type LookupsParts, tooUnsteady } from './lookups.ts';
import type { Outage } from './outage.ts';
import { Prefetch } from './prefetch.ts';

/** As many names of a listing are asked for one by one when it is not known what they are; more of them all at once. */
const UNSURE_MAX = 16;

/** A listing that keeps changing while it is asked for is asked for so often. */
const ATTEMPTS_MAX = 8;

/** How long is waited for an answer that only confirms what is known, in ms. */
const REFRESH_MS_MAX = 3_000;

/** A change that we make ourselves, to be ended with what it made of each place. */
export interface LocalChange {
  /** What became of a place that is left out is not known. `isNew`: a folder among them has just been made and is empty. */
  end(outcomes: readonly (readonly [Path, Known])[], how?: { readonly isNew: boolean }): void;
  /** It failed with `error`. Where the service certainly did nothing, all is as it was. */
  failed(error: unknown): void;
}

interface MetadataParts extends LookupsParts {
  /** Hears of the ids that were at a place which is empty now, as the change feed says. */
  readonly onGone?: (ids: readonly string[]) => void;
  readonly outage: Outage;
  readonly meter: Meter;
}

/** What is where in the service, from memory wherever that is certain, and never older than a change of ours. */
export class MetadataCache {
  readonly #parts: MetadataParts;
  readonly #inquiries: Lookups;
  readonly #own = new LocalChanges();
  readonly subtrees: Prefetch;

  constructor(parts: MetadataParts) {
    this.#parts = parts;
    this.#inquiries = new Lookups(parts);
    this.subtrees = new Prefetch(parts);
  }

  /** What is known without a question to the service. */
  peek(path: Path): Known | undefined {
    return this.#parts.known.peek(keyOf(path));
  }

  async stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    const known = this.peek(path);
    this.#parts.meter.lookedUp(known !== undefined);
    return known ? present(known) : this.#entry(path, signal);
  }

  /** Throws `FileError` `not-found` or `not-a-folder`. */
  async list(path: Path, signal?: AbortSignal): Promise<Listing> {
    this.#parts.meter.lookedUp(!this.isCold(path));
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const entry = await this.#entryOfListed(path, signal);
      if (!entry) throw new FileError('not-found', `${path} is not there`);
      if (entry.kind === 'file') throw new FileError('not-a-folder', `${path} is not a folder`);
      const known = this.#parts.known.folder(keyOf(path));
      if (known?.isWhole) return known.listing(entry);
      const unsure = known?.unsure;
      if (unsure && unsure.size <= UNSURE_MAX) {
        await Promise.all([...unsure].map((name) => this.#inquiries.entry(join(entry.path, name), signal)));
        continue;
      }
      if (await this.subtrees.awaitAhead(entry, signal)) continue;
      this.subtrees.notice(entry);
      const folder = await this.#inquiries.folder(entry, signal);
      if (folder.isWhole) return folder.listing(entry);
    }
    throw tooUnsteady(path);
  }

  /**
   * As `stat`; while the service cannot be asked, what was last there. `believesAbsence`: also that nothing was, which
   * is for writes, whose conflicts are found later; to a reader it would say that a file is gone.
   */
  statOrLast(
    path: Path,
    { believesAbsence = false }: { readonly believesAbsence?: boolean } = {},
    signal?: AbortSignal,
  ): Promise<Entry | undefined> {
    const last = this.#parts.known.last(keyOf(path));
    const usable = last === 'absent' && !believesAbsence ? undefined : last;
    return this.#orLast(usable && { value: present(usable) }, (stop) => this.stat(path, stop), signal);
  }

  /**
   * As `list`; while the service cannot be asked, what was last there. Names that are `isCovered` may be missing then: a
   * change of ours may have put them in doubt.
   */
  listOrLast(
    path: Path,
    isCovered: (path: Path) => boolean = () => false,
    signal?: AbortSignal,
  ): Promise<Listing> {
    const last = this.#parts.known.lastListing(keyOf(path), isCovered);
    return this.#orLast(last && { value: last }, (stop) => this.list(path, stop), signal);
  }

  /**
   * Asks what is at `path` even where it is known, as somebody else may have changed it a moment ago. What was known
   * stays where the service does not answer soon.
   */
  async refresh(path: Path): Promise<void> {
    const { outage, clock } = this.#parts;
    if (path === ROOT || outage.isOn) return;
    const asked = this.#inquiries.entry(path, undefined).catch((error) => {
      if (!isOutage(error)) throw error;
    });
    await waitAtMost(clock, REFRESH_MS_MAX, asked, () => undefined);
  }

  /** Whether a listing of `path` would cost a question. */
  isCold(path: Path): boolean {
    return !this.#parts.known.folder(keyOf(path))?.isWhole;
  }

  /** The folders of which something is known, at `path` and below. */
  foldersWithin(path: Path): CachedFolder[] {
    return this.#parts.known.foldersWithin(keyOf(path));
  }

  /** Takes over what the service does not know of an entry: the time that was set for it. */
  adorn(entry: Entry): void {
    this.#parts.known.adorn(entry);
  }

  /** What is known of `path` has turned out to be out of date. */
  forget(path: Path): void {
    this.#parts.known.forget(keyOf(path));
  }

  /**
   * To be called before we change something at `paths`, so that no older answer is believed afterwards.
   * `tree`: all below changes too. `shield`: what is there is shown until the end, whatever the feed says.
   */
  begin(
    paths: readonly Path[],
    { tree = false, shield = false }: { readonly tree?: boolean; readonly shield?: boolean } = {},
  ): LocalChange {
    const { known } = this.#parts;
    const changes = paths.map((path) => {
      const key = keyOf(path);
      return this.#own.begin(key, known.peek(key), { tree, shield });
    });
    return {
      end: (outcomes, { isNew } = { isNew: false }) => {
        const byKey = new Map(outcomes.map(([path, outcome]) => [keyOf(path), outcome]));
        for (const change of changes) {
          const made = this.#end(change, byKey.get(change.key));
          if (isNew && made !== undefined && made !== 'absent' && !change.seenBelow)
            known.startEmpty(made.path);
        }
      },
      failed: (error) => {
        const isUndone = isOutage(error) && error.details.isUndone;
        for (const change of changes)
          if (!isUndone || !this.#own.cancel(change)) this.#end(change, undefined);
      },
    };
  }

  /** What the change feed says, in its order. `doubted`: it may be older than changes of ours. */
  async apply(changes: readonly Change[], { doubted }: { readonly doubted: boolean }): Promise<void> {
    const puts = changes.flatMap((change) => (change.kind === 'put' ? change.entry : []));
    const shown = (await this.#parts.times.on(puts))[Symbol.iterator]();
    for (const change of changes) {
      if (change.kind === 'deleted') this.#applyOne(change.path, 'absent', doubted);
      else this.#applyOne(change.entry.path, shown.next().value ?? change.entry, doubted);
    }
  }

  /** The feed has told all that had happened by then. */
  reached(reached: Instant): void {
    this.#own.reached(reached);
  }

  /** Forgets all: nothing says what has changed since it was learnt. */
  reset(): void {
    this.#parts.known.reset();
  }

  #idsAt(key: string, known: Entry | undefined): string[] {
    const below = this.#parts.known.foldersWithin(key).flatMap((folder) => [...folder.entries()]);
    return [...(known ? [known] : []), ...below].map(({ id }) => id);
  }

  async #orLast<T>(
    last: { readonly value: T } | undefined,
    ask: (signal?: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const { outage } = this.#parts;
    if (last && outage.isOn) {
      // Nobody waits for what may take as long as a call is tried again.
      if (outage.takeTurn()) ask().catch(() => {});
      return last.value;
    }
    try {
      return await ask(signal);
    } catch (error) {
      if (!last || !isOutage(error)) throw error;
      return last.value;
    }
  }

  /** What is at `path`; where that is not known, what is in it is asked for at the same time. */
  async #entryOfListed(path: Path, signal: AbortSignal | undefined): Promise<Entry | undefined> {
    if (this.peek(path) !== undefined || this.subtrees.isComing(path)) return this.#entry(path, signal);
    const asked = this.#inquiries.entry(path, signal);
    this.#inquiries.beginFolder(path, asked, signal);
    const answered = present(await asked);
    // An answer that cannot be remembered leaves the folder unknown, and with it what a client does in it.
    return answered && this.#entry(path, signal);
  }

  async #entry(path: Path, signal: AbortSignal | undefined): Promise<Entry | undefined> {
    return present(this.peek(path) ?? (await this.#inquiries.entry(path, signal)));
  }

  #end(ongoing: Ongoing, outcome: Known | undefined): Known | undefined {
    const { known, clock } = this.#parts;
    const { key, tree } = ongoing;
    const made = this.#own.end(ongoing, outcome, clock.instant());
    const before = known.at(key);
    if (tree || outcome === undefined) known.drop(key);
    if (made !== undefined && made !== 'absent') known.doubtMissingAbove(key);
    known.learn(key, made);
    if (made === undefined) return made;
    if (made !== 'absent') known.store(key, made, parentOf(made.path));
    known.touchParent(key, before, made);
    return made;
  }

  #applyOne(path: Path, told: Known, doubted: boolean): void {
    const { known, isHidden } = this.#parts;
    // The root of the drive itself is gone, or another one.
    if (path === ROOT) this.reset();
    if (path === ROOT || isHidden(nameOf(path))) return;
    const key = keyOf(path);
    const verdict = this.#own.judge(key, told);
    const before = known.at(key);
    const isNews = before === undefined || stateOf(before) !== stateOf(told);
    // No news for us, but it may be for a question that was asked before.
    if (!isNews) known.fetches.changed(key, before);
    if (!isNews || verdict === 'ignore') return;
    if (told === 'absent' && before !== 'absent') this.#parts.onGone?.(this.#idsAt(key, before));
    if (doubted || verdict === 'doubt' || isOlder(told, before)) {
      known.forget(key);
      return;
    }
    // Of a folder that has only now come to be known, what lies in it may be known already.
    if (told === 'absent' || told.kind === 'file' || before !== undefined) known.drop(key);
    known.learn(key, told);
    known.touchParent(key, before, told);
  }
}

function present(known: Known): Entry | undefined {
  return known === 'absent' ? undefined : known;
}

/** Whether the feed tells of a revision that was committed before the one that is known. */
function isOlder(told: Known, before: Known | undefined): boolean {
  if (told === 'absent' || before === undefined || before === 'absent') return false;
  return told.kind === 'file' && before.kind === 'file' && told.committedMs < before.committedMs;
}
