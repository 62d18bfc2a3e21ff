import type { EventEmitter } from 'node:events';
import type { IncomingHttpHeaders, OutgoingHttpHeader } from 'node:http';
import type { Readable } from 'node:stream';

/** What carries the bytes of one request: a connection over HTTP/1.1, a stream over HTTP/2. */
export interface RequestSocket {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  readonly writableLength: number;
  readonly destroyed: boolean;
  readonly localPort?: number | undefined;
  destroy(): unknown;
}

/** A request over HTTP/1.1 or HTTP/2: what Node's `IncomingMessage` has in common with `Http2Request`. */
export interface HttpRequest extends Readable {
  readonly httpVersion: string;
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];
  readonly socket: RequestSocket;
  /** Whether the whole body has arrived. */
  readonly complete: boolean;
}

/** The answer to it: what Node's `ServerResponse` has in common with `Http2Response`. */
export interface HttpResponse extends EventEmitter {
  readonly statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableLength: number;
  /** Whether the connection may be used again; without effect over HTTP/2. */
  shouldKeepAlive: boolean;
  /** `list` has names and values in turns. */
  writeHead(status: number, list: OutgoingHttpHeader[]): unknown;
  flushHeaders(): void;
  writeContinue(): void;
  write(bytes: string | Uint8Array, written?: (error?: Error | null) => void): boolean;
  end(bytes?: string | Uint8Array): unknown;
  destroy(): unknown;
}
