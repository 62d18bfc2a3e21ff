import { ApiError, type ApiFailure } from '../../src/api/errors.ts';

/** A call that fails. */
interface Failure<What> {
  readonly call: What;
  readonly error: unknown;
  /** Whether the call takes effect before it fails, like one whose answer is lost. */
  readonly late: boolean;
}

/** Records the calls of a fake service, and makes them fail or wait. */
export class CallScript<What extends string> {
  /** All calls so far. */
  readonly calls: { readonly call: What; readonly path: string }[] = [];
  readonly #failures: Failure<What>[] = [];
  readonly #gates: Gate<What>[] = [];
  readonly #holding = new Set<Gate<What>>();

  /** `around` wraps each call. */
  constructor(
    private readonly around: <T>(call: What, work: () => Promise<T>) => Promise<T> = (_, work) => work(),
  ) {}

  /** Makes the next `call` fail, with `late` after it took effect. */
  failNext(call: What, failure: ApiFailure | Error, late: boolean): void {
    const error = typeof failure === 'string' ? new ApiError(failure, `${call} was made to fail`) : failure;
    this.#failures.push({ call, error, late });
  }

  /** The failure of every call, before it takes effect, until set to `undefined`. */
  outage: ApiFailure | undefined;

  /** Holds the next `call` before it does anything (`begin`), or its answer (`end`), until released. */
  holdNext(call: What, at: 'begin' | 'end'): Gate<What> {
    const gate = new Gate(call, at);
    this.#gates.push(gate);
    return gate;
  }

  /** Cancels the holds of calls that have not been made yet. */
  forgetGates(): void {
    this.#gates.length = 0;
  }

  /** Releases the held calls, and cancels the holds of calls that have not been made yet. */
  openGates(): void {
    this.forgetGates();
    for (const gate of this.#holding) gate.release();
  }

  /** Runs a call in a later turn of the event loop. */
  run<T>(call: What, path: string, signal: AbortSignal | undefined, work: () => T | Promise<T>): Promise<T> {
    return this.around(call, () => this.#run(call, path, signal, work));
  }

  async #run<T>(
    call: What,
    path: string,
    signal: AbortSignal | undefined,
    work: () => T | Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    this.calls.push({ call, path });
    // As over a network, other work runs meanwhile.
    await new Promise<void>((resolve) => setImmediate(resolve));
    await this.#gate(call, 'begin', signal);
    if (this.outage) throw new ApiError(this.outage, `${call}: the service is away`);
    const index = this.#failures.findIndex((failure) => failure.call === call);
    const [failure] = index < 0 ? [] : this.#failures.splice(index, 1);
    if (failure && !failure.late) throw failure.error;
    const result = await work();
    if (failure) throw failure.error;
    await this.#gate(call, 'end', signal);
    return result;
  }

  async #gate(call: What, at: 'begin' | 'end', signal: AbortSignal | undefined): Promise<void> {
    const index = this.#gates.findIndex((gate) => gate.call === call && gate.at === at);
    if (index < 0) return;
    const [gate] = this.#gates.splice(index, 1);
    if (!gate) return;
    this.#holding.add(gate);
    try {
      await gate.pass(signal);
    } finally {
      this.#holding.delete(gate);
    }
  }
}

/** A held call. */
export class Gate<What extends string = string> {
  /** Resolves when the call has reached the gate. */
  readonly reached: Promise<void>;
  readonly #open: Promise<void>;
  #reach: () => void = () => {};
  /** Resumes the call. */
  release: () => void = () => {};

  constructor(
    readonly call: What,
    readonly at: 'begin' | 'end',
  ) {
    this.reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
    this.#open = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  async pass(signal: AbortSignal | undefined): Promise<void> {
    this.#reach();
    await unlessAborted(signal, this.#open);
  }
}

/** Waits for `work`, or rejects with the reason of `signal`. */
export async function unlessAborted(signal: AbortSignal | undefined, work: Promise<void>): Promise<void> {
  let leave = () => {};
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal?.reason);
    if (signal?.aborted) leave();
    signal?.addEventListener('abort', leave, { once: true });
  });
  try {
    await Promise.race([work, left]);
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}
