import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** A request and its answer, as the HTTP server hands them over. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The hosts that the client asked for, as a trusted proxy says; `undefined` where it came through none. */
  readonly forwardedHosts: readonly string[] | undefined;
  /** Aborted when the client has gone before it had its answer. */
  readonly signal: AbortSignal;
  /** The request's body, to be read once; a client that awaits leave to send it gets that with the first piece. */
  body(): AsyncIterable<Uint8Array>;
  /** Answers whole, also when the body has not been read. */
  answer(answer: {
    readonly status: number;
    readonly headers: Readonly<OutgoingHttpHeaders>;
    readonly body: string | undefined;
  }): Promise<void>;
  /** Cuts the connection, so that half an answer does not end as if it were whole. */
  drop(): void;
}
