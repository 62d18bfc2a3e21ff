import { ApiError, isApiFailure, isOutage } from '../../api/errors.ts';
import type { FeedChange } from '../../api/remote.ts';
import type { Replacements } from '../../state/replacements.ts';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { isKeyWithin, join, keyOf, nameOf, type Path, parentOf } from '../../util/path.ts';
import { isWaiting, nameBefore } from '../names.ts';
import type { Recovery } from './recovery.ts';

interface HiddenEntriesDeps {
  readonly replacements: Pick<Replacements, 'all'>;
  readonly recovery: Pick<Recovery, 'restore'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * How long a hidden entry may be at the service before somebody else than its gateway recovers it, in ms. It may belong to a
 * davgate with another state, which needs a few calls until the new entry is in place.
 */
const STRAY_MS = 60_000;

/** Pause after the service has refused to rename a hidden entry, in ms. */
const REFUSED_MS = 3_600_000;

interface Hidden {
  readonly path: Path;
  readonly since: Instant;
  /** Time after `since` until it is recovered. */
  readonly waitMs: number;
}

/**
 * The entries at the service that have the hidden name of a replaced entry. One that stays and is in no noted replacement is
 * recovered: somebody has moved or copied the folder around it, and no client would ever see it again. No request waits for
 * that, for clients have seen the folder without it.
 */
export class HiddenEntries {
  readonly #shown = new Map<string, Hidden>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(private readonly deps: HiddenEntriesDeps) {}

  /** Looks at what the service has listed or reported. */
  look(changes: readonly FeedChange[]): void {
    for (const change of changes)
      if (change.kind === 'deleted') this.#forgetWithin(change.path);
      else if (change.kind === 'put' && isWaiting(change.entry.name)) this.#add(change.entry.path);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  #add(path: Path): void {
    const key = keyOf(path);
    if (this.#shown.has(key) || nameBefore(nameOf(path)) === undefined) return;
    this.#shown.set(key, { path, since: this.deps.clock.instant(), waitMs: STRAY_MS });
    this.#start();
  }

  #forgetWithin(path: Path): void {
    if (this.#shown.size === 0) return;
    const top = keyOf(path);
    for (const key of this.#shown.keys()) if (isKeyWithin(key, top)) this.#shown.delete(key);
  }

  #start(): void {
    this.#running ??= this.#run(this.#stop.signal).finally(() => {
      this.#running = undefined;
      // One may have come after the last round.
      if (this.#shown.size > 0 && !this.#stop.signal.aborted) this.#start();
    });
  }

  async #run(stop: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    while (this.#shown.size > 0 && !stop.aborted) {
      await clock.sleep(STRAY_MS, stop).catch(() => {});
      if (stop.aborted) return;
      await this.#recoverStrays().catch((error) =>
        log.warn('cannot tell yet which hidden entries no replacement needs; davgate tries again', {
          reason: String(error),
        }),
      );
    }
  }

  async #recoverStrays(): Promise<void> {
    const { replacements, clock } = this.deps;
    const due = [...this.#shown.values()].filter(({ since, waitMs }) => elapsedMs(clock, since) >= waitMs);
    if (due.length === 0) return;
    const noted = new Set((await replacements.all()).map(({ waitingAt }) => keyOf(waitingAt)));
    for (const { path } of due) if (!noted.has(keyOf(path))) await this.#recover(path);
  }

  async #recover(path: Path): Promise<void> {
    const { recovery, clock, log } = this.deps;
    const key = keyOf(path);
    const name = nameBefore(nameOf(path));
    // It may have been deleted or moved meanwhile.
    if (name === undefined || !this.#shown.has(key)) return;
    try {
      await recovery.restore(path, join(parentOf(path), name));
      this.#shown.delete(key);
    } catch (error) {
      if (!(error instanceof ApiError) || isOutage(error)) throw error;
      // Another gateway was faster.
      if (isApiFailure(error, 'not-found')) return void this.#shown.delete(key);
      this.#shown.set(key, { path, since: clock.instant(), waitMs: REFUSED_MS });
      log.warn('the service refuses to give a hidden entry its name back; davgate tries again in an hour', {
        path,
        reason: String(error),
      });
    }
  }
}
