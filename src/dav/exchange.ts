import type { OutgoingHttpHeaders } from 'node:http';
import type { BasePath } from '../util/base-path.ts';
import type { ContentCoding } from '../util/content-coding.ts';
import type { HttpRequest, HttpResponse } from '../util/http-messages.ts';

/** One HTTP request and its answer, as far as the protocol needs them. The HTTP server owns both. */
export interface Exchange {
  readonly request: HttpRequest;
  /** Answers that are made while they are sent are written here after `writeHead`; all others go through `answer`. */
  readonly response: Omit<HttpResponse, 'writeHead'>;
  /** Identifies the request in the log and in answers about internal errors. */
  readonly requestId: string;
  /** The request target without the path below which the server serves; with it, if the request is outside. */
  readonly target: string;
  /** The path that the client sees above the drive, percent-encoded; `''` for none. */
  readonly prefix: BasePath;
  /** The folder above the drive that the request is for, spelled like `prefix`; `undefined` for the drive itself. */
  readonly above: BasePath | undefined;
  /** The hosts that the client asked for, according to a trusted proxy; `undefined` without such a proxy. */
  readonly forwardedHosts: readonly string[] | undefined;
  /** Aborts when the client goes away before it has its answer. */
  readonly signal: AbortSignal;
  /** The coding in which the client gets long answers; `undefined`: as they are. */
  readonly coding: ContentCoding | undefined;
  readonly isChunked: boolean;
  /** Length of the body that the headers announce, in bytes; `undefined` for a chunked body without one. */
  readonly announcedBytes: number | undefined;
  /** Streams the request's body, once. The first read sends `100 Continue` to a client that waits for it. */
  body(): AsyncIterable<Uint8Array>;
  /** Returns the body if all of it has come; otherwise `undefined`, and `body` reads it. */
  bodyHere(): Promise<Uint8Array | undefined>;
  /** Adds a header field to the answer, whatever that answer will be, in place of one of the same name. */
  setHeader(name: string, value: string): void;
  /** Begins an answer. `bodyBytes` is its `Content-Length`. */
  writeHead(status: number, headers: Readonly<OutgoingHttpHeaders>, bodyBytes?: number): void;
  /** Sends a complete answer and adds its length. The request's body may still be unread. */
  answer(answer: {
    readonly status: number;
    readonly headers: Readonly<OutgoingHttpHeaders>;
    readonly body: string | Uint8Array | undefined;
  }): Promise<void>;
  /** Sends a part of the answer. Resolves when the buffer may be reused, also when the client has gone. */
  write(bytes: Uint8Array): Promise<void>;
  /** Closes the connection in the middle of an answer, so that the client sees that it is incomplete. */
  drop(): void;
}
