import type { IncomingHttpHeaders } from 'node:http';
import { onAbort } from '../util/abort.ts';
import { type BodyConnection, type BodyLimits, HttpBody } from './http-body.ts';

/** The head of an answer, and its body to be read. */
interface CallAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: HttpBody;
}

/**
 * One request, as the handler of undici's `dispatch`. undici's own `request` keeps the pieces of a body for later; here
 * they are copied at once, so that their memory can be reused (`ReceiveBuffers`).
 */
export class HttpCall {
  /** Resolves at the head of the answer. Rejects with undici's error or the signal's reason. */
  readonly answer: Promise<CallAnswer>;
  #resolve: (answer: CallAnswer) => void = () => {};
  #reject: (failure: unknown) => void = () => {};
  #connection: BodyConnection | undefined;
  #body: HttpBody | undefined;
  readonly #removeListener: () => void;

  /** `signal` aborts the call until its body has been received. `received` is told of all bytes of the body that come. */
  constructor(
    private readonly limits: BodyLimits,
    private readonly signal: AbortSignal,
    private readonly received: (bytes: number) => void,
  ) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#removeListener = onAbort(signal, () => {
      this.#connection?.abort(signal.reason);
      this.#reject(signal.reason);
    });
  }

  onRequestStart(connection: BodyConnection): void {
    this.#connection = connection;
    if (this.signal.aborted) connection.abort(this.signal.reason);
  }

  onResponseStart(connection: BodyConnection, status: number, headers: IncomingHttpHeaders): void {
    // 103 and the like come before the answer.
    if (status < 200) return;
    this.#body = new HttpBody(connection, this.limits);
    this.#resolve({ status, headers, body: this.#body });
  }

  onResponseData(_connection: BodyConnection, bytes: Buffer): void {
    this.received(bytes.length);
    this.#body?.add(bytes);
  }

  onResponseEnd(): void {
    this.#removeListener();
    this.#body?.end({});
  }

  onResponseError(_connection: BodyConnection, failure: Error): void {
    this.#removeListener();
    this.#body?.end({ failure });
    this.#reject(failure);
  }
}
