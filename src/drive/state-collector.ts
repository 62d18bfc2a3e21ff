import type { Remote } from '../api/remote.ts';
import type { DriveState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Alarm } from '../util/wait.ts';

export interface StateCollectorParts {
  readonly remote: Pick<Remote, 'locate'>;
  readonly state: Pick<DriveState, 'properties' | 'times'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Between two sweeps of all ids for which something is kept, in ms. */
const SWEEP_EVERY_MS = 24 * 3_600_000;

/** Between two calls: for ids that have probably gone, and for all others, in ms. */
const PACE_MS = { suspected: 100, swept: 5_000 };

/** After a doubt, so many ids are asked for at the faster pace. */
const QUICK_MAX = 200;

/** Suspected ids that are remembered; the next sweep finds what is beyond. */
const SUSPECTS_MAX = 10_000;

/** After a call that failed, in ms. */
const RETRY_MS = 60_000;

/** The service's own ids begin so; those of held, set-aside and pending files do not, and have owners of their own. */
const SERVICE_ID = 'id:';

/**
 * Forgets the properties and times of files that no longer exist at the service. Asks the service for each id first,
 * because a moved file keeps its id: slowly, one call at a time.
 */
export class StateCollector {
  readonly #suspects = new Set<string>();
  #swept: string[] = [];
  #quick = 0;
  readonly #stop = new AbortController();
  readonly #alarm: Alarm;
  #running: Promise<void> = Promise.resolve();

  constructor(private readonly parts: StateCollectorParts) {
    this.#alarm = new Alarm(parts.clock);
  }

  start(): void {
    this.#running = this.#run(this.#stop.signal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** The files with these ids have gone from their places. */
  async suspect(ids: readonly string[]): Promise<void> {
    const { properties, times } = this.parts.state;
    const asked = ids.filter(isServiceId);
    const kept = [...(await properties.of(asked)).keys(), ...(await times.of(asked)).keys()];
    for (const id of kept) if (this.#suspects.size < SUSPECTS_MAX) this.#suspects.add(id);
    if (kept.length > 0) this.#alarm.ring();
  }

  /** Files have gone whose ids are not known. */
  async doubt(): Promise<void> {
    const kept = await this.#keptIds();
    const waiting = new Set(this.#swept);
    // What waits already is asked for first: else many doubts would keep some from ever having their turn.
    this.#swept = [...kept.filter((id) => !waiting.has(id)), ...this.#swept];
    this.#quick = QUICK_MAX;
    this.#alarm.ring();
  }

  async #run(stop: AbortSignal): Promise<void> {
    const { log } = this.parts;
    while (!stop.aborted) {
      try {
        await this.#step();
      } catch (error) {
        if (stop.aborted) return;
        log.warn('properties of files that are gone are not collected for now', { reason: String(error) });
        await this.#sleep(RETRY_MS);
      }
    }
  }

  async #step(): Promise<void> {
    const [suspect] = this.#suspects;
    const id = suspect ?? this.#swept.at(-1);
    if (id === undefined) {
      await this.#sleep(SWEEP_EVERY_MS);
      if (this.#suspects.size + this.#swept.length === 0) this.#swept = await this.#keptIds();
      return;
    }
    const isQuick = suspect !== undefined || this.#quick > 0;
    await this.#sleep(isQuick ? PACE_MS.suspected : PACE_MS.swept);
    if (this.#stop.signal.aborted) return;
    await this.#check(id);
    if (suspect !== undefined) this.#suspects.delete(suspect);
    else this.#swept.pop();
    if (suspect === undefined && this.#quick > 0) this.#quick -= 1;
  }

  async #check(id: string): Promise<void> {
    const { remote, state } = this.parts;
    // A file that was moved out of the drive's root may come back, and keeps its state for as long as it exists.
    if ((await remote.locate(id, this.#stop.signal)) !== undefined) return;
    await Promise.all([state.properties.forget([id]), state.times.forget([id])]);
  }

  async #keptIds(): Promise<string[]> {
    const { properties, times } = this.parts.state;
    const ids = new Set(await properties.ids());
    for (const id of await times.ids()) ids.add(id);
    return [...ids].filter(isServiceId);
  }

  /** Ends early when there is something to do. */
  #sleep(ms: number): Promise<void> {
    return this.#alarm.sleep(ms, this.#stop.signal);
  }
}

function isServiceId(id: string): boolean {
  return id.startsWith(SERVICE_ID);
}
