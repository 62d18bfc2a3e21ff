import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Instant } from '../util/clock.ts';
import { onAbort } from '../util/on-abort.ts';
import { type Answer, type Content, isContent } from './answer.ts';
import { pathOfTarget, queryOfTarget } from './target.ts';
import { isBodySmall, swallow } from './unread-body.ts';

/** The client went away before all of its body had come, or before it had its answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** An id that no other request has. */
export function newRequestId(): string {
  return randomBytes(16).toString('hex');
}

export interface ExchangeOptions {
  /** The client's, without a port. */
  readonly address: string;
  /** The hosts that the client asked for, as a trusted proxy says; `undefined` where it came through none. */
  readonly forwardedHosts: readonly string[] | undefined;
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  readonly clock: Clock;
}

/** One HTTP request and its answer, of the gateway or of the service. */
export class Exchange {
  /** Tells this request from all others, in the log and to the client. */
  readonly requestId = newRequestId();
  /** Still percent-encoded. */
  readonly path: string;
  readonly address: string;
  readonly forwardedHosts: readonly string[] | undefined;
  readonly start: Instant;
  /** Aborted, with `ClientGone`, when the connection ends before the answer is out. The request has no other. */
  readonly signal: AbortSignal;
  /** Resolves when the answer is out, or the connection gone. */
  readonly ended: Promise<void>;
  /** Whose valid credentials came with the request: a user's name, or an account's or app's id. */
  principal: string | undefined;
  readonly #clock: Clock;
  readonly #sentBeforeBytes: number;
  readonly #gone = new AbortController();
  readonly #end: () => void;
  #isSent = false;
  #isBodyHeldBack: boolean;
  #query: URLSearchParams | undefined;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    { address, forwardedHosts, expectsContinue, clock }: ExchangeOptions,
  ) {
    this.path = pathOfTarget(request.url ?? '/');
    this.address = address;
    this.forwardedHosts = forwardedHosts;
    this.start = clock.instant();
    this.signal = this.#gone.signal;
    this.#clock = clock;
    this.#sentBeforeBytes = request.socket.bytesWritten;
    this.#isBodyHeldBack = expectsContinue;
    let end = (): void => undefined;
    this.ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#end = end;
    // Without a listener, a connection that is reset would end the process.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    // Node says "finish" also of an answer whose connection breaks. First in line, for Node then closes the others.
    response.prependOnceListener('finish', () => {
      this.#isSent = !request.socket.destroyed;
    });
    response.once('close', () => this.close());
    if (expectsContinue) this.#continueWhenRead();
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(queryOfTarget(this.request.url ?? '/'));
    return this.#query;
  }

  /** All of the answer has been handed to the system, on a connection that was still there. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** Bytes that went over the connection since the request came: its answer, and the rest of answers before it. */
  get sentBytes(): number {
    return this.request.socket.bytesWritten - this.#sentBeforeBytes;
  }

  /** The client waits for leave to send its body: nobody has begun to read it. */
  get isBodyHeldBack(): boolean {
    return this.#isBodyHeldBack;
  }

  /** Ends the exchange with its connection: Node tells nothing to a response that waits behind another. */
  close(): void {
    if (!this.#isSent) this.#gone.abort(new ClientGone('the client has gone'));
    this.#end();
  }

  /**
   * The body as it comes, to be read once. Asking for the first piece sends `100 Continue`. Leaving early keeps the
   * connection, or the client would not learn why. Throws `ClientGone` unless all of the body comes.
   */
  async *body(): AsyncGenerator<Uint8Array> {
    try {
      yield* this.request.iterator({ destroyOnReturn: false });
    } catch (error) {
      throw new ClientGone('the connection broke off in the middle of the body', { cause: error });
    }
    if (!this.request.complete) throw new ClientGone('the connection ended in the middle of the body');
  }

  /**
   * Answers, whether the request's body was read or not: the whole answer goes out first, then the rest of the body is
   * swallowed, and only then the connection goes on or is closed. Resolves when all of it is handed to Node.
   */
  async answer({ status, headers, body }: Answer): Promise<void> {
    const { request, response } = this;
    const hasUnread = !request.complete || request.readableLength > 0;
    const isBodyHeldBack = this.#isBodyHeldBack;
    if (!request.complete && (isBodyHeldBack || !isBodySmall(request))) response.shouldKeepAlive = false;
    response.writeHead(status, { ...headers, ...lengthOf(status, body) });
    const isHead = request.method === 'HEAD';
    if (isContent(body)) await this.#send(body, isHead);
    else if (!isHead && body && hasUnread) response.write(body);
    if (!hasUnread) response.end(isHead || isContent(body) ? undefined : body);
    else {
      if (isHead) response.flushHeaders();
      if (!isBodyHeldBack) await swallow(request, this.#clock);
      response.end();
    }
  }

  /** Cuts the connection, once it is this answer's turn on it: nobody must take what was sent so far for a whole one. */
  drop(): void {
    this.response.destroy();
  }

  async #send({ sizeBytes, bytes }: Content, isHead: boolean): Promise<void> {
    const iterator = bytes[Symbol.asyncIterator]();
    let leftBytes = sizeBytes;
    try {
      if (isHead) return;
      for (
        let next = await iterator.next();
        !next.done && !this.signal.aborted;
        next = await iterator.next()
      ) {
        leftBytes -= next.value.length;
        if (leftBytes < 0) break;
        await this.#written(next.value);
      }
      if (leftBytes !== 0 && !this.signal.aborted)
        throw new Error(`the content is not of the ${sizeBytes} bytes that were promised`);
    } catch (error) {
      this.drop();
      throw error;
    } finally {
      await iterator.return?.();
    }
  }

  /** Resolves when the system has taken `bytes`, or nobody is there to take them: they may change then. */
  #written(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      const removeListener = onAbort(this.signal, () => resolve());
      this.response.write(bytes, () => {
        removeListener();
        resolve();
      });
    });
  }

  /**
   * Sends `100 Continue` once somebody starts to read the body: until then it may be refused unsent. A client that got
   * no leave may or may not send its body after our answer, so nothing may follow on that connection.
   */
  #continueWhenRead(): void {
    const { request, response } = this;
    const keepAlive = response.shouldKeepAlive;
    response.shouldKeepAlive = false;
    request.on('newListener', (event) => {
      if (!this.#isBodyHeldBack || response.headersSent || (event !== 'data' && event !== 'readable')) return;
      this.#isBodyHeldBack = false;
      response.shouldKeepAlive = keepAlive;
      response.writeContinue();
    });
  }
}

function lengthOf(status: number, body: Answer['body']): { readonly 'Content-Length'?: number } {
  if (status === 204 || status === 304) return {};
  return { 'Content-Length': isContent(body) ? body.sizeBytes : Buffer.byteLength(body ?? '') };
}
