import type { Remote } from '../api/remote.ts';
import type { DriveState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Alarm } from '../util/wait.ts';

export interface StateCollectorDeps {
  readonly remote: Pick<Remote, 'locate'>;
  readonly state: Pick<DriveState, 'properties' | 'times'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Interval between two sweeps over all ids with state, in ms. */
const SWEEP_EVERY_MS = 24 * 3_600_000;

/** Pause between two calls, in ms: for ids that are probably gone, and for all others. */
const PACE_MS = { suspected: 100, swept: 5_000 };

/** Number of ids that are checked at the faster pace after a doubt. */
const QUICK_MAX = 200;

/** Maximum number of suspected ids; the next sweep finds the others. */
const SUSPECTS_MAX = 10_000;

/** Pause after a failed call, in ms. */
const RETRY_MS = 60_000;

/** Prefix of the service's ids. Placeholders, local files and pending writes have other ids and are forgotten elsewhere. */
const SERVICE_ID = 'id:';

/**
 * Forgets the properties and times of files that no longer exist at the service. Asks the service about each id, because a
 * moved file keeps its id; slowly, one call at a time.
 */
export class StateCollector {
  readonly #suspects = new Set<string>();
  #swept: string[] = [];
  #quick = 0;
  readonly #stop = new AbortController();
  readonly #alarm: Alarm;
  #running: Promise<void> = Promise.resolve();

  constructor(private readonly deps: StateCollectorDeps) {
    this.#alarm = new Alarm(deps.clock);
  }

  start(): void {
    this.#running = this.#run(this.#stop.signal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Queues ids whose files have disappeared from their paths. */
  async suspect(ids: readonly string[]): Promise<void> {
    const { properties, times } = this.deps.state;
    const asked = ids.filter(isServiceId);
    const kept = [...(await properties.of(asked)).keys(), ...(await times.of(asked)).keys()];
    for (const id of kept) if (this.#suspects.size < SUSPECTS_MAX) this.#suspects.add(id);
    if (kept.length > 0) this.#alarm.ring();
  }

  /** Queues all ids that have state. Called after files with unknown ids were deleted. */
  async doubt(): Promise<void> {
    const kept = await this.#keptIds();
    const waiting = new Set(this.#swept);
    // Waiting ids stay first: many doubts in a row must not starve them.
    this.#swept = [...kept.filter((id) => !waiting.has(id)), ...this.#swept];
    this.#quick = QUICK_MAX;
    this.#alarm.ring();
  }

  async #run(stop: AbortSignal): Promise<void> {
    const { log } = this.deps;
    while (!stop.aborted) {
      try {
        await this.#step();
      } catch (error) {
        if (stop.aborted) return;
        log.warn('cannot look for deleted files now; davgate tries again', { reason: String(error) });
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
    const { remote, state } = this.deps;
    // A file that was moved out of the drive's root may come back, and keeps its state for as long as it exists.
    if ((await remote.locate(id, this.#stop.signal)) !== undefined) return;
    await Promise.all([state.properties.forget([id]), state.times.forget([id])]);
  }

  async #keptIds(): Promise<string[]> {
    const { properties, times } = this.deps.state;
    const ids = new Set(await properties.ids());
    for (const id of await times.ids()) ids.add(id);
    return [...ids].filter(isServiceId);
  }

  #sleep(ms: number): Promise<void> {
    return this.#alarm.sleep(ms, this.#stop.signal);
  }
}

function isServiceId(id: string): boolean {
  return id.startsWith(SERVICE_ID);
}
