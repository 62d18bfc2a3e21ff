import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Files } from '../drive/files.ts';
import type { DriveState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Path } from '../util/path.ts';
import type { RequestBody } from './body.ts';
import type { Client } from './clients.ts';
import type { FailedPuts } from './failed-puts.ts';
import type { XmlReader } from './xml/read.ts';

/** A drive as the protocol needs it. */
export interface Drive {
  readonly files: Files;
  readonly state: DriveState;
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
