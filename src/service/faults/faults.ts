import type { Clock } from '../../util/clock.ts';
import { seededRandom } from './chance.ts';
import { RateLimit } from './rate-limit.ts';
import { checkFaults, type FaultSettings, type FaultSwitch } from './switches.ts';

/** The faults of one running service, as they are set at the moment. */
export class Faults {
  #settings: FaultSettings = {};
  #random = seededRandom(0);
  #rateLimit: RateLimit | undefined;
  readonly #leftInBurst = new Map<FaultSwitch, number>();

  /** Throws `FaultSettingError`. */
  constructor(
    settings: FaultSettings,
    readonly clock: Clock,
  ) {
    this.set(settings);
  }

  /** Puts these in place of all that was set, and begins chance anew. Throws `FaultSettingError`. */
  set(settings: FaultSettings): void {
    checkFaults(settings);
    this.#settings = { ...settings };
    this.#random = seededRandom(this.value('seed'));
    this.#leftInBurst.clear();
    const perSecond = this.value('rate-per-second');
    const burst = this.value('rate-burst') || Math.max(1, perSecond);
    this.#rateLimit = perSecond > 0 ? new RateLimit(perSecond, burst, this.clock) : undefined;
  }

  /** 0 when it is off. */
  value(name: FaultSwitch): number {
    return this.#settings[name] ?? 0;
  }

  /** Whether a fault that is set as a share happens this time. What is off leaves chance as it is. */
  happens(name: FaultSwitch): boolean {
    const share = this.value(name);
    return share > 0 && this.#random() < share;
  }

  /** Likewise; once it has happened it goes on for a burst. */
  happensInBursts(name: FaultSwitch): boolean {
    const left = this.#leftInBurst.get(name) ?? 0;
    if (left === 0 && !this.happens(name)) return false;
    this.#leftInBurst.set(name, left === 0 ? Math.max(0, this.value('error-burst') - 1) : left - 1);
    return true;
  }

  /** A whole number from 0 to below `end`. */
  random(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** How many seconds a call of `caller` has to wait; 0 when it may go on, and then it counts. */
  secondsOverRate(caller: string): number {
    return this.#rateLimit?.take(caller) ?? 0;
  }

  get isRateLimited(): boolean {
    return this.#rateLimit !== undefined;
  }
}
