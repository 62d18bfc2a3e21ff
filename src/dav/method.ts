import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { DriveState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Path } from '../util/path.ts';
import type { Files } from '../vfs/files.ts';
import type { RequestBody } from './body.ts';
import type { Client } from './clients.ts';
import type { FailedPuts } from './failed-puts.ts';
import type { XmlReader } from './xml/read.ts';

/** A drive as the protocol needs it. */
export interface Drive {
  readonly files: Files;
  readonly state: DriveState;
}

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

/** Everything that one request may touch. */
export interface Context {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** As in `Exchange`. */
  readonly forwardedHosts: readonly string[] | undefined;
  /** What the request line names, decoded once. */
  readonly path: Path;
  /** The request line's path ended with a slash. */
  readonly namesCollection: boolean;
  /** The user who asks; `''` when the drive is open to all. */
  readonly principal: string;
  readonly client: Client;
  readonly drive: Drive;
  readonly clock: Clock;
  readonly log: Log;
  readonly randomUuid: () => string;
  readonly failedPuts: FailedPuts;
  readonly xml: XmlReader;
  /** Read the body here, not from `request`: leaving that early closes the connection before there is an answer. */
  readonly body: RequestBody;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

/** Answers the request, or throws: a `FileError` or a `DavError`. */
export type Method = (context: Context) => Promise<void>;
