import { randomUUID } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { onAbort } from '../util/abort.ts';
import { type BasePath, partAbove, pathBelow } from '../util/base-path.ts';
import type { Clock, Instant } from '../util/clock.ts';
import { Alarm } from '../util/wait.ts';
import type { Forwarded } from './forwarded.ts';

/** Maximum size of an unwanted body that is read to its end, so that the connection can be used again, in bytes. */
export const UNWANTED_BODY_BYTES_MAX = 1024 * 1024;

/**
 * How long, in ms, and how many bytes of a longer unwanted body are read before the connection is closed. A client that
 * sends everything before it reads would lose our answer if the connection broke meanwhile.
 */
const LINGER_MS = 10_000;
export const LINGER_BYTES_MAX = 256 * 1024 * 1024;

/** A complete answer. `Exchange.answer` adds its length. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<OutgoingHttpHeaders>;
  readonly body: string | Uint8Array | Content | undefined;
}

/** A body of known length. Each piece is read when the system has taken the one before. */
export interface Content {
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** A reason for not serving a request. */
export interface Refusal {
  readonly status: number;
  /** One sentence for a person: what was wrong and what to do. */
  readonly text: string;
  readonly headers?: OutgoingHttpHeaders;
}

/** The client left before its whole body had arrived, or before it had its answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** Returns an id that no other request has: 32 hex digits. */
export function newRequestId(): string {
  // Node draws the random bytes of many UUIDs at once.
  return randomUUID().replaceAll('-', '');
}

export interface ExchangeOptions {
  readonly forwarded: Forwarded;
  /** Whether the client speaks https, with us or with a trusted proxy. */
  readonly isSecure: boolean;
  /** The path below which the server itself serves. */
  readonly basePath: BasePath;
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  readonly clock: Clock;
}

/** One HTTP request to the gateway or the service, and its answer. */
export class Exchange {
  /** Identifies this request in the log and to the client. */
  readonly requestId = newRequestId();
  /** The request target without the base path; with it, if the request is outside. */
  readonly target: string;
  /** The path of `target`, still percent-encoded. */
  readonly path: string;
  /** The path that proxies have taken off, as far as they say so. */
  readonly forwardedPrefix: BasePath;
  /** The path that the client sees above `path`: `forwardedPrefix`, and then the server's base path. */
  readonly prefix: BasePath;
  /** Whether the target is not below the base path. */
  readonly isOutside: boolean;
  /** The part of `prefix` that the target of such a request is, if it is a folder above the base path. */
  readonly above: BasePath | undefined;
  readonly address: string;
  readonly forwardedHosts: readonly string[] | undefined;
  /** Whether the client speaks https, with us or with a trusted proxy. */
  readonly isSecure: boolean;
  readonly start: Instant;
  /** The request's only signal: aborted with `ClientGone` when the connection ends before the answer is sent. */
  readonly signal: AbortSignal;
  /** Resolves when the answer is sent or the connection has ended. */
  readonly ended: Promise<void>;
  /** The owner of the valid credentials in the request: a user's name, or an account's or app's id. */
  principal: string | undefined;
  /** Whether it is a health check, a scrape or a stream of events. These are not counted as traffic. */
  isMonitoring = false;
  readonly #clock: Clock;
  readonly #sentBeforeBytes: number;
  readonly #gone = new AbortController();
  readonly #end: () => void;
  #isSent = false;
  #awaitsContinue: boolean;
  #query: URLSearchParams | undefined;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    { forwarded, isSecure, basePath, expectsContinue, clock }: ExchangeOptions,
  ) {
    const target = request.url ?? '/';
    const below = targetBelow(basePath, target);
    this.target = below ?? target;
    this.path = pathOfTarget(this.target);
    this.forwardedPrefix = forwarded.prefix ?? '';
    this.prefix = `${this.forwardedPrefix}${basePath}`;
    this.isOutside = below === undefined;
    const part = this.isOutside ? partAbove(basePath, this.path) : undefined;
    this.above = part === undefined ? undefined : `${this.forwardedPrefix}${part}`;
    this.address = forwarded.address;
    this.forwardedHosts = forwarded.hosts;
    this.isSecure = isSecure;
    this.start = clock.instant();
    this.signal = this.#gone.signal;
    this.#clock = clock;
    this.#sentBeforeBytes = request.socket.bytesWritten;
    this.#awaitsContinue = expectsContinue;
    let end = (): void => undefined;
    this.ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#end = end;
    // Without a listener, a connection that is reset would end the process.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    // Node emits "finish" even if the connection breaks. Prepended, because Node closes the connection in its own listener.
    response.prependOnceListener('finish', () => {
      this.#isSent = !request.socket.destroyed;
    });
    response.once('close', () => this.close());
    if (expectsContinue) this.#continueWhenRead();
  }

  get isChunked(): boolean {
    return this.request.headers['transfer-encoding'] !== undefined;
  }

  /** Length of the body that the headers announce, in bytes; `undefined` for a chunked body without one. */
  get announcedBytes(): number | undefined {
    const { headers } = this.request;
    if (!this.isChunked) return Number(headers['content-length'] ?? 0);
    // Finder sends chunks and announces their total length in this header.
    const expected = String(headers['x-expected-entity-length'] ?? '').trim();
    return /^\d{1,15}$/.test(expected) ? Number(expected) : undefined;
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(queryOfTarget(this.request.url ?? '/'));
    return this.#query;
  }

  /** Whether the whole answer was handed to the system while the connection was still open. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** Bytes sent over the connection since the request arrived: its answer, and the rest of earlier answers. */
  get sentBytes(): number {
    return this.request.socket.bytesWritten - this.#sentBeforeBytes;
  }

  /** Whether the client still waits for `100 Continue`, because nothing has begun to read its body. */
  get awaitsContinue(): boolean {
    return this.#awaitsContinue;
  }

  /** Ends the exchange when its connection has ended. Node emits no event on a response queued behind another. */
  close(): void {
    if (!this.#isSent) this.#gone.abort(new ClientGone('the client has gone'));
    this.#end();
  }

  /**
   * Yields the body as it arrives, once. Reading the first piece sends `100 Continue`. Stopping early keeps the
   * connection open, so that the client gets the answer. Throws `ClientGone` unless the whole body arrives.
   */
  async *body(): AsyncGenerator<Uint8Array> {
    const { request } = this;
    try {
      if (this.#isBodyHere) yield* this.#wholeBody();
      else yield* request.iterator({ destroyOnReturn: false });
    } catch (error) {
      throw new ClientGone('the connection broke in the middle of the body', { cause: error });
    }
    if (!request.complete) throw new ClientGone('the connection ended in the middle of the body');
  }

  /**
   * Answers, whether or not the request's body was read: sends the whole answer, then discards the rest of the body, and
   * only then reuses or closes the connection. Resolves when everything is handed to Node.
   */
  async answer({ status, headers, body }: Answer): Promise<void> {
    const { request, response } = this;
    const hasUnread = !request.complete || request.readableLength > 0;
    const awaitsContinue = this.#awaitsContinue;
    if (!request.complete && (awaitsContinue || !this.#isBodySmall)) response.shouldKeepAlive = false;
    response.writeHead(status, { ...headers, ...lengthOf(status, body) });
    const isHead = request.method === 'HEAD';
    if (isContent(body)) await this.#send(body, isHead);
    else if (!isHead && body && hasUnread) response.write(body);
    if (!hasUnread) response.end(isHead || isContent(body) ? undefined : body);
    else {
      if (isHead) response.flushHeaders();
      if (!awaitsContinue) await discardBody(request, this.#clock);
      response.end();
    }
  }

  /** Answers with one sentence. Call it before the request's body is read. */
  refuse({ status, text, headers }: Refusal): Promise<void> {
    const type = { 'Content-Type': 'text/plain; charset=utf-8' };
    return this.answer({ status, headers: { ...headers, ...type }, body: `${text}\n` });
  }

  /**
   * Sends a part of the answer. Resolves when the system has taken `bytes` or the client has gone. The caller may then
   * reuse the buffer.
   */
  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      const removeListener = onAbort(this.signal, () => resolve());
      this.response.write(bytes, () => {
        removeListener();
        resolve();
      });
    });
  }

  /** Breaks the connection when it is this answer's turn, so that a partial answer is not taken for a whole one. */
  drop(): void {
    this.response.destroy();
  }

  /** Whether all of the body came with the header, like most short ones. */
  get #isBodyHere(): boolean {
    const { request } = this;
    if (this.isChunked || this.#awaitsContinue) return false;
    return request.readableLength > 0 && request.readableLength === this.announcedBytes;
  }

  /** Yields the body in one piece; Node's iterator would cost more than all the rest of reading it. */
  async *#wholeBody(): AsyncGenerator<Uint8Array> {
    const { request } = this;
    const over = new Promise((resolve) => request.once('end', resolve).once('close', resolve));
    yield request.read();
    request.resume();
    await over;
  }

  get #isBodySmall(): boolean {
    return !this.isChunked && (this.announcedBytes ?? 0) <= UNWANTED_BODY_BYTES_MAX;
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
        await this.write(next.value);
      }
      if (leftBytes !== 0 && !this.signal.aborted)
        throw new Error(`the content does not have the promised ${sizeBytes} bytes`);
    } catch (error) {
      this.drop();
      throw error;
    } finally {
      await iterator.return?.();
    }
  }

  /**
   * Sends `100 Continue` when reading of the body begins; until then the request can be refused without its body. A
   * client that got no `100 Continue` may or may not send its body after our answer, so the connection is not reused.
   */
  #continueWhenRead(): void {
    const { request, response } = this;
    const keepAlive = response.shouldKeepAlive;
    response.shouldKeepAlive = false;
    request.on('newListener', (event) => {
      if (!this.#awaitsContinue || response.headersSent || (event !== 'data' && event !== 'readable')) return;
      this.#awaitsContinue = false;
      response.shouldKeepAlive = keepAlive;
      response.writeContinue();
    });
  }
}

export function isContent(body: Answer['body']): body is Content {
  return typeof body === 'object' && 'bytes' in body;
}

function lengthOf(status: number, body: Answer['body']): { readonly 'Content-Length'?: number } {
  if (status === 204 || status === 304) return {};
  return { 'Content-Length': isContent(body) ? body.sizeBytes : Buffer.byteLength(body ?? '') };
}

/** Returns the path of a request line, still percent-encoded, without the query and a proxy's scheme and host. */
export function pathOfTarget(target: string): string {
  const path = /^[^?#]*/.exec(target)?.[0] ?? '';
  return path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*(?=\/|$)/i, '') || '/';
}

/** Takes the base path off a request line; `undefined` outside of it. `OPTIONS *` is about all that is served. */
function targetBelow(base: BasePath, target: string): string | undefined {
  if (base === '' || target === '*') return target;
  const below = pathBelow(base, pathOfTarget(target));
  return below && below + (/[?#].*$/.exec(target)?.[0] ?? '');
}

/** Returns the query of a request line, without the question mark. */
export function queryOfTarget(target: string): string {
  return /^[^?#]*\?([^#]*)/.exec(target)?.[1] ?? '';
}

/** Reads and discards the rest of the body. Stops at the limits, or when the client has gone. */
async function discardBody(request: IncomingMessage, clock: Clock): Promise<void> {
  if (request.destroyed || request.readableEnded) return;
  if (request.complete && request.readableLength === 0) return;
  const done = new Alarm(clock);
  const stop = () => done.ring();
  let sizeBytes = 0;
  request.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > LINGER_BYTES_MAX) stop();
  });
  for (const event of ['end', 'close', 'error']) request.once(event, stop);
  request.resume();
  await done.sleep(LINGER_MS);
}
