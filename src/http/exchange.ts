import { randomUUID } from 'node:crypto';
import type { OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http';
import { onAbort } from '../util/abort.ts';
import { type BasePath, partAbove } from '../util/base-path.ts';
import type { Clock, Instant } from '../util/clock.ts';
import { type ContentCoding, codingFor } from '../util/content-coding.ts';
import type { HttpRequest, HttpResponse } from '../util/http-messages.ts';
import { isLoopback } from '../util/networks.ts';
import type { Pace, Paces } from './bandwidth.ts';
import type { Forwarded } from './forwarded.ts';
import { IS_PATH, pathOfTarget, queryOfTarget, targetBelow } from './request-target.ts';
import { discardBody, UNWANTED_BODY_BYTES_MAX } from './unwanted-body.ts';

/** A complete answer. `Exchange.answer` adds its length, if that is known. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<OutgoingHttpHeaders>;
  readonly body: string | Uint8Array | Content | undefined;
}

/** A body in pieces, chunked if its size is not known. Each piece is read when the system has taken the one before. */
export interface Content {
  readonly sizeBytes: number | undefined;
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

type HeaderFields = Readonly<Record<string, string>>;

export interface ExchangeOptions {
  readonly forwarded: Forwarded;
  /** Whether the client speaks https, with us or with a trusted proxy. */
  readonly isSecure: boolean;
  /** The path below which the server itself serves. */
  readonly basePath: BasePath;
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  readonly clock: Clock;
  /** Returns the header fields of every answer. */
  readonly headers: (exchange: Exchange) => HeaderFields;
}

/** One HTTP request to the gateway or the service, and its answer. */
export class Exchange {
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
  /** Resolves when the answer is sent or the connection has ended. */
  readonly ended: Promise<void>;
  /** The owner of the valid credentials in the request: a user's name, or an account's or app's id. */
  principal: string | undefined;
  /** Whether it is a health check, a scrape or a stream of events. These are not counted as traffic. */
  isMonitoring = false;
  readonly #clock: Clock;
  readonly #sentBeforeBytes: number;
  readonly #headersOf: ExchangeOptions['headers'];
  #end: () => void = () => {};
  #isSent = false;
  /** Whether all of the body was taken from Node. */
  #isBodyTaken = false;
  #isGone = false;
  #requestId: string | undefined;
  #gone: AbortController | undefined;
  /** Header fields that the answer gets beside its own. */
  #fields: HeaderFields | undefined;
  #awaitsContinue: boolean;
  #upload: Pace | undefined;
  #download: Pace | undefined;
  #query: URLSearchParams | undefined;

  constructor(
    readonly request: HttpRequest,
    readonly response: HttpResponse,
    { forwarded, isSecure, basePath, expectsContinue, clock, headers }: ExchangeOptions,
  ) {
    const target = request.url ?? '/';
    const below = basePath === '' ? target : targetBelow(basePath, target);
    this.target = below ?? target;
    this.path = IS_PATH.test(this.target) ? this.target : pathOfTarget(this.target);
    this.forwardedPrefix = forwarded.prefix ?? '';
    this.prefix = `${this.forwardedPrefix}${basePath}`;
    this.isOutside = below === undefined;
    const part = this.isOutside ? partAbove(basePath, this.path) : undefined;
    this.above = part === undefined ? undefined : `${this.forwardedPrefix}${part}`;
    this.address = forwarded.address;
    this.forwardedHosts = forwarded.hosts;
    this.isSecure = isSecure;
    this.start = clock.instant();
    this.#headersOf = headers;
    this.#clock = clock;
    this.#sentBeforeBytes = request.socket.bytesWritten;
    this.#awaitsContinue = expectsContinue;
    this.ended = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    // Without a listener, a connection that is reset would end the process.
    request.on('error', ignoreError);
    response.on('error', ignoreError);
    // Node emits "finish" even if the connection breaks. Prepended, because Node closes the connection in its own listener.
    response.prependOnceListener('finish', () => {
      this.#isSent = !request.socket.destroyed;
    });
    response.once('close', () => this.close());
    if (expectsContinue) this.#continueWhenRead();
  }

  /** Identifies this request in the log and to the client. */
  get requestId(): string {
    this.#requestId ??= newRequestId();
    return this.#requestId;
  }

  /**
   * The request's only signal: aborted with `ClientGone` when the connection ends before the answer is sent. Made for the
   * first caller, because a request that is answered from memory needs none.
   */
  get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#isGone && !this.#gone.signal.aborted) this.#gone.abort(clientGone());
    return this.#gone.signal;
  }

  /** The coding for a text; `undefined` if the client takes none, or is on this machine, where only time counts. */
  get coding(): ContentCoding | undefined {
    return isLoopback(this.address) ? undefined : codingFor(this.request.headers);
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

  /** Ends the exchange when its connection has ended. Node emits no event on a response queued behind another. */
  close(): void {
    this.#isGone = !this.#isSent;
    if (this.#isGone) this.#gone?.abort(clientGone());
    this.#end();
  }

  /**
   * Yields the body as it arrives, once. Reading the first piece sends `100 Continue`. Stopping early keeps the
   * connection open, so that the client gets the answer. Throws `ClientGone` unless the whole body arrives.
   */
  async *body(): AsyncGenerator<Uint8Array> {
    const { request } = this;
    try {
      const whole = this.#takeBodyHere();
      if (whole && !this.#upload) return yield whole;
      const pieces = whole ? [whole] : request.iterator({ destroyOnReturn: false });
      yield* this.#upload?.received(pieces, this.signal) ?? pieces;
      if (whole) return;
    } catch (error) {
      throw new ClientGone('the connection broke in the middle of the body', { cause: error });
    }
    if (!request.complete) throw new ClientGone('the connection ended in the middle of the body');
  }

  /** Returns the body if all of it came with the header, like most short ones; otherwise `undefined`, and `body` reads it. */
  async bodyHere(): Promise<Uint8Array | undefined> {
    // Node parses the body after the handler of the request has returned.
    await undefined;
    return this.#takeBodyHere();
  }

  /** Adds a header field to the answer, whatever that answer will be, in place of one of the same name. */
  setHeader(name: string, value: string): void {
    this.#fields = { ...this.#common, [name]: value };
  }

  removeHeader(name: string): void {
    const { [name]: _, ...others } = this.#common;
    this.#fields = others;
  }

  /** Takes back what `setHeader` and `removeHeader` did. */
  resetHeaders(): void {
    this.#fields = undefined;
  }

  /** Begins the answer. Call it in place of the response's own method, which lacks the fields of `setHeader`. */
  writeHead(status: number, headers: Readonly<OutgoingHttpHeaders>, bodyBytes?: number): void {
    // Node needs half the time for a list of names and values that it needs for an object made from several.
    const list: OutgoingHttpHeader[] = [];
    addFields(list, this.#common);
    addFields(list, headers);
    if (bodyBytes !== undefined) list.push('Content-Length', bodyBytes);
    this.response.writeHead(status, list);
  }

  /**
   * Answers, whether or not the request's body was read: sends the whole answer, then discards the rest of the body, and
   * only then reuses or closes the connection. Resolves when everything is handed to Node.
   */
  async answer({ status, headers, body: whole }: Answer): Promise<void> {
    const { request, response } = this;
    const body = this.#download && whole instanceof Uint8Array ? contentOf(whole) : whole;
    const hasUnread = !this.#isBodyTaken && (!request.complete || request.readableLength > 0);
    const awaitsContinue = this.#awaitsContinue;
    if (hasUnread && !request.complete && (awaitsContinue || !this.#isBodySmall))
      response.shouldKeepAlive = false;
    this.writeHead(status, headers, lengthOf(status, body));
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

  /** Limits the rate at which the body is read and content is sent. Texts, like listings and errors, are not limited. */
  limitRate(paces: Paces | undefined): void {
    this.#upload = paces?.upload;
    this.#download = paces?.download;
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
    if (!this.#download) return this.#write(bytes);
    return this.#download.send(bytes, (piece) => this.#write(piece), this.signal);
  }

  #write(bytes: Uint8Array): Promise<void> {
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

  get #common(): HeaderFields {
    this.#fields ??= this.#headersOf(this);
    return this.#fields;
  }

  /** Returns the body in one piece, if it is here; Node's iterator would cost more than all the rest of reading it. */
  #takeBodyHere(): Uint8Array | undefined {
    const { request } = this;
    if (this.isChunked || this.#awaitsContinue) return undefined;
    if (request.readableLength === 0 || request.readableLength !== this.announcedBytes) return undefined;
    const bytes = request.read();
    this.#isBodyTaken = true;
    // Its end, which Node finds a moment later, must not wait for a reader.
    request.resume();
    return bytes;
  }

  get #isBodySmall(): boolean {
    return !this.isChunked && (this.announcedBytes ?? 0) <= UNWANTED_BODY_BYTES_MAX;
  }

  async #send({ sizeBytes, bytes }: Content, isHead: boolean): Promise<void> {
    const iterator = bytes[Symbol.asyncIterator]();
    let leftBytes = sizeBytes ?? Number.POSITIVE_INFINITY;
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
      if (sizeBytes !== undefined && leftBytes !== 0 && !this.signal.aborted)
        throw new Error(`the content does not have the promised ${sizeBytes} bytes`);
    } catch (error) {
      const { aborted, reason } = this.signal;
      this.drop();
      // What cannot be read for a client that has gone is no failure.
      throw aborted ? reason : error;
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

function contentOf(bytes: Uint8Array): Content {
  const pieces = async function* () {
    yield bytes;
  };
  return { sizeBytes: bytes.length, bytes: pieces() };
}

export function isContent(body: Answer['body']): body is Content {
  return typeof body === 'object' && 'bytes' in body;
}

function lengthOf(status: number, body: Answer['body']): number | undefined {
  if (status === 204 || status === 304) return undefined;
  return isContent(body) ? body.sizeBytes : Buffer.byteLength(body ?? '');
}

function addFields(list: OutgoingHttpHeader[], fields: Readonly<OutgoingHttpHeaders>): void {
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) list.push(name, value);
  }
}

function clientGone(): ClientGone {
  return new ClientGone('the client has gone');
}

function ignoreError(): void {}
