import { Readable } from 'node:stream';
import type { buildConnector, Pool } from 'undici';
// Only the used parts of undici: fetch, WebSocket, caches and mocks would triple its loading time.
import connectorWith from 'undici/lib/core/connect.js';
import UndiciPool from 'undici/lib/dispatcher/pool.js';
import { linkedSignal } from '../util/abort.ts';
import type { ByteSource } from '../util/byte-source.ts';
import { type Clock, elapsedMs, type Instant, systemClock } from '../util/clock.ts';
import { type HttpBody, HttpCall, ReceiveBuffers } from './http-answer.ts';
import { LostConnection, lostBy } from './lost-connection.ts';

/** The service's hosts. */
export type Host = 'base' | 'content' | 'notify';

export interface HttpRequest {
  readonly host: Host;
  /** Path from the host's root, like `/2/files/upload`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /**
   * How long the head of the answer may take once the body is sent. `first`: a retry over another connection can follow.
   * `slow`: the time that a change of a big tree takes.
   */
  readonly answerTimeout?: { readonly ms: number } | 'first' | 'slow';
  /** How long a whole answer may take once the body is sent, in ms; twice as long as its head when absent. */
  readonly wholeAnswerMs?: number;
}

export interface HttpHead {
  readonly status: number;
  header(name: string): string | undefined;
}

export interface HttpAnswer extends HttpHead {
  readonly text: string;
}

/** The head of an answer, and its body to be read. */
export interface HttpStream extends HttpHead, ByteSource {
  /** Closes the connection, unless the body has been read to its end. */
  cancel(): void;
  /** Calls `listener` when the body has been received whole, or its connection is closed. */
  onClose(listener: () => void): void;
}

export interface HttpTimeouts {
  readonly connectMs: number;
  /** Time from the end of the request to the head of the answer. */
  readonly answerMs: number;
  /** `answerMs` of a first try. */
  readonly firstAnswerMs: number;
  /** `answerMs` of calls that move or remove many files at once; Dropbox may take a minute. */
  readonly slowAnswerMs: number;
  /** How long an answer's body may bring almost no bytes. */
  readonly silenceMs: number;
}

export const HTTP_TIMEOUTS: HttpTimeouts = {
  connectMs: 10_000,
  answerMs: 25_000,
  firstAnswerMs: 15_000,
  slowAnswerMs: 100_000,
  silenceMs: 10_000,
};

/** How long an idle connection is kept, in ms; the service may ask for less. */
const IDLE_MS = 20_000;

/** Maximum size of an answer's head: `Dropbox-API-Result` takes up to six bytes for each character of a deep path. */
const HEADER_BYTES_MAX = 128 * 1024;

/** Maximum size of an answer in memory: a page of 2,000 entries has about 2 MB. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** Size of the pieces of a request body. Each piece shows progress, so that a slow line is not taken for a dead one. */
const PIECE_BYTES = 256 * 1024;

/**
 * Opens all outgoing connections to the service, in one pool for each host. Knows HTTP and nothing of the API. Throws
 * `LostConnection`, or the signal's reason; any status is an answer.
 */
export class Http {
  readonly #pools: Record<Host, { readonly pool: Pool; readonly prefix: string }>;
  #sentBytes = 0;
  #receivedBytes = 0;

  constructor(
    urls: Readonly<Record<Host, string>>,
    private readonly timeouts: HttpTimeouts = HTTP_TIMEOUTS,
    private readonly clock: Clock = systemClock,
  ) {
    const open = (url: string) => {
      const { origin, pathname } = new URL(url);
      const pool = new UndiciPool(origin, {
        connect: connector(timeouts.connectMs),
        headersTimeout: 0,
        bodyTimeout: timeouts.silenceMs,
        keepAliveTimeout: IDLE_MS,
        maxHeaderSize: HEADER_BYTES_MAX,
      });
      return { pool, prefix: pathname.replace(/\/+$/, '') };
    };
    this.#pools = { base: open(urls.base), content: open(urls.content), notify: open(urls.notify) };
  }

  /** Sends a request and reads the whole answer. */
  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const life = this.#life(request, signal);
    try {
      const { head, body } = await this.#open(request, life);
      return { ...head, text: await this.#readText(body, life.signal) };
    } finally {
      life.release();
    }
  }

  /** Sends a request and returns at the head of a 200 or 206; any other answer is read whole. */
  async open(request: HttpRequest, signal: AbortSignal): Promise<HttpStream | HttpAnswer> {
    const life = this.#life(request, signal);
    try {
      const { head, body } = await this.#open(request, life);
      if (head.status !== 200 && head.status !== 206)
        return { ...head, text: await this.#readText(body, life.signal) };
      return {
        ...head,
        read: (into) => body.read(into).catch((cause) => lost(body, cause, signal)),
        cancel: () => body.cancel(),
        onClose: (listener) => body.onClose(listener),
      };
    } finally {
      // A long body has no time limit while it makes progress.
      life.deadline.release();
    }
  }

  /** Bytes of bodies since the start. */
  get traffic(): { readonly sentBytes: number; readonly receivedBytes: number } {
    return { sentBytes: this.#sentBytes, receivedBytes: this.#receivedBytes };
  }

  /** Closes all connections; calls under way fail. */
  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map(({ pool }) => pool.destroy()));
  }

  #headMs({ answerTimeout }: HttpRequest): number {
    if (answerTimeout === 'slow') return this.timeouts.slowAnswerMs;
    if (answerTimeout === 'first') return this.timeouts.firstAnswerMs;
    return answerTimeout?.ms ?? this.timeouts.answerMs;
  }

  /** Returns a signal that is aborted with `signal`, or when the answer is late. */
  #life(request: HttpRequest, signal: AbortSignal): Life {
    const wholeMs = request.wholeAnswerMs ?? 2 * this.#headMs(request);
    const limits = { headMs: Math.min(wholeMs, this.#headMs(request)), wholeMs };
    const deadline = new AnswerDeadline(this.clock, limits);
    const { signal: either, release } = linkedSignal(signal, deadline.signal);
    return {
      signal: either,
      deadline,
      release() {
        deadline.release();
        release();
      },
    };
  }

  async #open(request: HttpRequest, { signal, deadline }: Life) {
    const { pool, prefix } = this.#pools[request.host];
    try {
      const limits = { clock: this.clock, silenceMs: this.timeouts.silenceMs };
      const call = new HttpCall(limits, signal, this.#received);
      const options = {
        path: prefix + request.path,
        method: 'POST' as const,
        headers: { ...request.headers, ...lengthOf(request.body) },
        body: this.#outgoing(request.body, deadline),
      };
      pool.dispatch(options, call);
      const { status, headers, body } = await call.answer;
      deadline.headCame();
      return { head: { status, header: (name: string) => [headers[name]].flat()[0] }, body };
    } catch (cause) {
      throw signal.aborted ? signal.reason : lostBy(cause);
    }
  }

  #outgoing(
    body: string | Uint8Array | undefined,
    deadline: AnswerDeadline,
  ): string | Uint8Array | Readable | null {
    if (body === undefined) return null;
    if (typeof body !== 'string' && body.length > PIECE_BYTES)
      return Readable.from(this.#cut(body, deadline), { objectMode: false });
    this.#sentBytes += typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    return body;
  }

  *#cut(body: Uint8Array, deadline: AnswerDeadline): Generator<Uint8Array> {
    for (let start = 0; start < body.length; start += PIECE_BYTES) {
      const piece = body.subarray(start, start + PIECE_BYTES);
      this.#sentBytes += piece.length;
      yield piece;
      deadline.sent();
    }
  }

  readonly #received = (bytes: number): void => {
    this.#receivedBytes += bytes;
  };

  async #readText(body: HttpBody, signal: AbortSignal): Promise<string> {
    const bytes = await body.readRest(ANSWER_BYTES_MAX).catch((cause) => lost(body, cause, signal));
    return bytes.toString('utf8');
  }
}

/** Returns undici's connector, with memory of its own for each connection and one TLS session for all of them. */
function connector(timeoutMs: number): buildConnector.connector {
  let session: Buffer | undefined;
  return (options, callback) => {
    // Twice the limit, which undici applies to names and values only.
    const onread = new ReceiveBuffers(2 * HEADER_BYTES_MAX);
    const socket = connectorWith({ timeout: timeoutMs, session, onread })(options, callback);
    onread.socket = socket;
    socket.on('session', (latest: Buffer) => {
      session = latest;
    });
    return socket;
  };
}

/** Throws why a body could not be read. Closes its connection, which would otherwise go on receiving. */
function lost(body: HttpBody, cause: unknown, signal: AbortSignal): never {
  body.cancel();
  throw signal.aborted ? signal.reason : lostBy(cause);
}

interface Life {
  readonly signal: AbortSignal;
  readonly deadline: AnswerDeadline;
  readonly release: () => void;
}

/** Returns the error of a late answer. The service has received the whole request. */
function lateBy(limitMs: number): LostConnection {
  return new LostConnection(`no whole answer within ${limitMs / 1000} s`, true, true, undefined);
}

function lengthOf(body: string | Uint8Array | undefined): Record<string, string> {
  if (body === undefined) return {};
  return { 'content-length': String(typeof body === 'string' ? Buffer.byteLength(body) : body.length) };
}

/** Both limits count from the last byte of the request. */
interface AnswerLimits {
  /** Time until the head of the answer. */
  readonly headMs: number;
  /** Time until the end of an answer that is read whole; at least `headMs`. */
  readonly wholeMs: number;
}

/** Nobody sees this reason. Without one, Node makes an exception with a stack trace for each answer. */
const OVER = 'the answer has come';

/** Aborts its signal when an answer does not come in time, even if it makes slow progress. */
class AnswerDeadline {
  readonly #late = new AbortController();
  readonly #over = new AbortController();
  #sentAt: Instant;
  #limitMs: number;

  constructor(
    private readonly clock: Clock,
    private readonly limits: AnswerLimits,
  ) {
    this.#sentAt = clock.instant();
    this.#limitMs = limits.headMs;
    this.#watch().catch(() => {});
  }

  get signal(): AbortSignal {
    return this.#late.signal;
  }

  /** Notes that a part of the request was sent. */
  sent(): void {
    this.#sentAt = this.clock.instant();
  }

  /** Notes that the head of the answer has come. */
  headCame(): void {
    this.#limitMs = this.limits.wholeMs;
  }

  /** Ends the time limit. */
  release(): void {
    this.#over.abort(OVER);
  }

  async #watch(): Promise<void> {
    for (let leftMs = this.#limitMs; leftMs > 0; leftMs = this.#limitMs - elapsedMs(this.clock, this.#sentAt))
      await this.clock.sleep(leftMs, this.#over.signal);
    this.#late.abort(lateBy(this.#limitMs));
  }
}
