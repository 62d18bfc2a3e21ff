import { onAbort } from './abort.ts';

interface Flight<Value> {
  readonly outcome: Promise<Value>;
  readonly controller: AbortController;
  callers: number;
}

/**
 * Lets those who ask for the same thing at the same time share one piece of work. It goes on while one
 * caller still waits; when the last has gone it is aborted, and the next caller starts anew.
 */
export class SingleFlight<Key, Value> {
  readonly #flights = new Map<Key, Flight<Value>>();

  /** The outcome of `work`, or of the same key's work under way. Rejects at once when `signal` is aborted. */
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
    // Work that throws before its first await is a failed flight like any other.
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
