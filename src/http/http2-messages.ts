import { EventEmitter } from 'node:events';
import type { OutgoingHttpHeader } from 'node:http';
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { Readable } from 'node:stream';
import type { HttpRequest, HttpResponse, RequestSocket } from '../util/http-messages.ts';

/**
 * Size of the pieces in which content is handed to Node, in bytes. A whole block of a file would count as the session's
 * memory until a slow client has taken it, and a few of them would use up `maxSessionMemory`.
 */
const PIECE_BYTES = 256 * 1024;

/** Statuses whose answers have no body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * When one of these fields has several lines, Node's HTTP/2 silently keeps only the first; its HTTP/1.1 joins them. Several lines
 * of `If-Match` are one list (RFC 9110 §5.3); those of a field with a single value get the same answer over both versions.
 */
const JOINED = [
  'if-match',
  'if-none-match',
  'if-range',
  'range',
  'content-encoding',
  'content-md5',
  'content-range',
] as const;

/**
 * A stream in the place of the socket that a request over HTTP/1.1 has for itself: it counts the bytes of its bodies, and
 * destroying it leaves the other requests of the connection alone.
 */
export class StreamSocket implements RequestSocket {
  bytesRead = 0;
  bytesWritten = 0;
  readonly localPort: number | undefined;

  constructor(private readonly stream: ServerHttp2Stream) {
    this.localPort = stream.session?.socket.localPort;
  }

  get writableLength(): number {
    return this.stream.writableLength;
  }

  /** Whether it has ended in another way than with the answer. */
  get destroyed(): boolean {
    return this.stream.destroyed && isReset(this.stream);
  }

  destroy(): void {
    reset(this.stream);
  }
}

/**
 * A request over HTTP/2. Node's own `Http2ServerRequest` says that it is complete, and ends without an error, when it was reset in the middle.
 */
export class Http2Request extends Readable implements HttpRequest {
  readonly httpVersion = '2.0';
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  readonly socket: StreamSocket;
  /** Whether the whole body has arrived. */
  complete: boolean;
  #isRead = false;

  constructor(
    readonly stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
  ) {
    super({ autoDestroy: false });
    this.complete = stream.endAfterHeaders;
    this.method = headers[':method'] ?? '';
    this.url = headers[':path'] ?? '/';
    this.headers = likeHttp1(headers, rawHeaders, this.complete);
    this.rawHeaders = withoutPseudo(rawHeaders);
    this.socket = new StreamSocket(stream);
    stream.once('end', () => {
      // A stream that was reset ends, too.
      this.complete ||= !stream.aborted && !stream.destroyed;
      if (this.complete) this.push(null);
    });
    stream.once('close', () => {
      if (!this.readableEnded) this.destroy(new Error('the stream was closed before its body was read'));
    });
  }

  override _read(): void {
    if (this.#isRead) return void this.stream.resume();
    this.#isRead = true;
    this.stream.on('data', (chunk: Buffer) => {
      this.socket.bytesRead += chunk.length;
      if (!this.push(chunk)) this.stream.pause();
    });
  }
}

/**
 * Adds `Host`, which `:authority` replaces, and to a body of unknown length the `Transfer-Encoding` that it has over
 * HTTP/1.1. No client can send that field over HTTP/2: such a request is malformed (RFC 9113 §8.2.2). Joins the lines of
 * the fields for which Node kept only the first.
 */
function likeHttp1(
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  isBodiless: boolean,
): IncomingHttpHeaders {
  headers.host = headers[':authority'] ?? headers.host;
  if (!isBodiless && headers['content-length'] === undefined) headers['transfer-encoding'] = 'chunked';
  for (const name of JOINED) if (headers[name] !== undefined) headers[name] = linesOf(rawHeaders, name);
  return headers;
}

function linesOf(rawHeaders: readonly string[], name: string): string {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1] === name).join(', ');
}

/** Returns names and values without `:method` and its like; `:authority` becomes the `Host`, also beside another one. */
function withoutPseudo(rawHeaders: readonly string[]): string[] {
  const list: string[] = [];
  const hasAuthority = rawHeaders.includes(':authority');
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (name === ':authority') list.push('host', value);
    else if (!name.startsWith(':') && !(hasAuthority && name === 'host')) list.push(name, value);
  }
  return list;
}

/**
 * The answer to a request over HTTP/2. Node's own `Http2ServerResponse` says "finish" also of an answer that was cut off, and says nothing when a HEAD is reset.
 */
export class Http2Response extends EventEmitter implements HttpResponse {
  statusCode = 200;
  /** Without effect: a stream ends with its request, and the connection stays. */
  shouldKeepAlive = true;
  readonly #request: Http2Request;
  readonly #stream: ServerHttp2Stream;
  #hasEnded = false;
  #isFinished = false;

  constructor(request: Http2Request) {
    super();
    this.#request = request;
    this.#stream = request.stream;
    // Node destroys a stream that both sides have ended, sometimes before its "finish".
    this.#stream.once('close', () => {
      if (this.#hasEnded && !isReset(this.#stream)) this.#finish();
      this.emit('close');
    });
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  get writableLength(): number {
    return this.#stream.writableLength;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed;
  }

  /** `list` has names and values in turns. */
  writeHead(status: number, list: readonly OutgoingHttpHeader[] = []): this {
    if (this.#isOver) return this;
    this.statusCode = status;
    const endStream = this.#request.method === 'HEAD' || BODILESS.has(status);
    this.#stream.respond({ ...fieldsOf(list), ':status': status }, { endStream });
    return this;
  }

  flushHeaders(): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
  }

  writeContinue(): void {
    if (!this.#isOver) this.#stream.additionalHeaders({ ':status': 100 });
  }

  /** A caller with a callback writes no more until it is called. */
  write(bytes: string | Uint8Array, written?: (error?: Error | null) => void): boolean {
    this.flushHeaders();
    if (this.#isOver) return false;
    this.#request.socket.bytesWritten += Buffer.byteLength(bytes);
    if (typeof bytes === 'string' || !written || bytes.length <= PIECE_BYTES)
      return this.#stream.write(bytes, written);
    void this.#writePieces(bytes, written);
    return false;
  }

  end(bytes?: string | Uint8Array): this {
    this.flushHeaders();
    if (this.#isOver) return this;
    if (bytes !== undefined && !this.#stream.writableEnded) this.write(bytes);
    this.#hasEnded = true;
    this.#stream.end();
    if (this.#stream.writableFinished) process.nextTick(() => this.#finish());
    else this.#stream.once('finish', () => this.#finish());
    return this;
  }

  /** Resets the stream, so that the client does not take a part of the answer for all of it. */
  destroy(): this {
    reset(this.#stream);
    return this;
  }

  get #isOver(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  async #writePieces(bytes: Uint8Array, written: (error?: Error | null) => void): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#isOver; at += PIECE_BYTES) {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      await new Promise((resolve) => this.#stream.write(piece, resolve));
    }
    written();
  }

  /** Asks a client that still sends its body to stop (RFC 9113 §8.1), once its answer is on the way. */
  #finish(): void {
    if (this.#isFinished || isReset(this.#stream)) return;
    this.#isFinished = true;
    this.emit('finish');
    if (!this.#request.complete) setImmediate(() => this.#stream.close(constants.NGHTTP2_NO_ERROR));
  }
}

/** Resets the stream with INTERNAL_ERROR. Its `close` would end it first, like a whole answer. */
function reset(stream: ServerHttp2Stream): void {
  stream.destroy(new Error('the answer was cut off'));
}

function isReset({ aborted, rstCode }: ServerHttp2Stream): boolean {
  return aborted || (rstCode ?? 0) !== constants.NGHTTP2_NO_ERROR;
}

function fieldsOf(list: readonly OutgoingHttpHeader[]): OutgoingHttpHeaders {
  const fields: OutgoingHttpHeaders = {};
  for (let index = 0; index < list.length; index += 2) {
    const name = String(list[index]).toLowerCase();
    const value = list[index + 1];
    const before = fields[name];
    fields[name] = before === undefined ? value : [before, value].flat().map(String);
  }
  return fields;
}
