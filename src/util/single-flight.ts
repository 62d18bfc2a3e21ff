import { onAbort } from './abort.ts';

interface Flight<Value> {
  readonly outcome: Promise<Value>;
  readonly controller: AbortController;
  callers: number;
}

/**
 * Shares one piece of work among parallel callers with the same key. When the last caller has given up, the work is
 * aborted, and the next caller starts it again.
 */
export class SingleFlight<Key, Value> {
  readonly #flights = new Map<Key, Flight<Value>>();

  /** Returns the result of `work`, or of running work with the same key. Rejects at once when `signal` is aborted. */
  run(key: Key, work: (signal: AbortSignal) => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const flight = this.#flights.get(key) ?? this.#start(key, work);
    flight.callers++;
    return new Promise((resolve, reject) => {
      const removeListener = onAbort(signal, (reason) => {
        flight.callers--;
        if (flight.callers === 0) this.#abandon(key, flight, reason);
        reject(reason);
      });
      flight.outcome.then(resolve, reject).finally(removeListener);
    });
  }

  #start(key: Key, work: (signal: AbortSignal) => Promise<Value>): Flight<Value> {
    const controller = new AbortController();
    // Work that throws before its first await must fail like any other.
    const outcome = new Promise<Value>((resolve) => resolve(work(controller.signal)));
    const flight = { outcome, controller, callers: 0 };
    this.#flights.set(key, flight);
    const land = () => this.#forget(key, flight);
    outcome.then(land, land);
    return flight;
  }

  #abandon(key: Key, flight: Flight<Value>, reason: unknown): void {
    this.#forget(key, flight);
    flight.controller.abort(reason);
  }

  #forget(key: Key, flight: Flight<Value>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}
