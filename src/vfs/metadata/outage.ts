import { ApiError, type ApiFailure } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import { type Clock, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';

/** How often the service is asked again, by one of the requests that come meanwhile. */
const ASK_EVERY_MS = 5_000;

const OUTAGES: ReadonlySet<ApiFailure> = new Set([
  'offline',
  'unavailable',
  'rate-limited',
  'unauthorized',
  'foreign',
]);

/** Whether `error` says that the service cannot be asked now, and nothing of what was asked. */
export function isOutage(error: unknown): error is ApiError {
  return error instanceof ApiError && OUTAGES.has(error.failure);
}

/** Whether the service can be asked, as the last question showed. */
export class Outage {
  #isOn = false;
  #askAgain = LONG_AGO;

  constructor(private readonly clock: Clock) {}

  get isOn(): boolean {
    return this.#isOn;
  }

  begin(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#askAgain = instantIn(this.clock, ASK_EVERY_MS);
  }

  end(): void {
    this.#isOn = false;
  }

  /** Whether it is time to ask again. A caller that gets `true` must ask. */
  takeTurn(): boolean {
    if (remainingMs(this.clock, this.#askAgain) > 0) return false;
    this.#askAgain = instantIn(this.clock, ASK_EVERY_MS);
    return true;
  }
}

/** `remote`, whose answers and failures tell `outage` how the service is. */
export function watched(remote: Remote, outage: Outage): Remote {
  const failed = (error: unknown): never => {
    if (isOutage(error)) outage.begin();
    throw error;
  };
  const answered = <T>(answer: T): T => {
    outage.end();
    return answer;
  };
  async function* list(...call: Parameters<Remote['list']>): ReturnType<Remote['list']> {
    try {
      for await (const page of remote.list(...call)) yield answered(page);
    } catch (error) {
      failed(error);
    }
  }
  return {
    ...remote,
    list,
    stat: (path, signal) => remote.stat(path, signal).then(answered, failed),
    changesSince: (cursor, signal) => remote.changesSince(cursor, signal).then(answered, failed),
  };
}
