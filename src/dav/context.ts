import type { IncomingMessage } from 'node:http';
import type { Files } from '../drive/files.ts';
import type { RequestState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Path } from '../util/path.ts';
import type { Exchange } from './exchange.ts';
import type { XmlReader } from './xml/xml-reader.ts';

/** A drive as the protocol sees it. */
export interface Drive {
  readonly files: Files;
  readonly state: RequestState;
  /** Whether the user may not change what is at `path`. Absent if the user may change everything. */
  readonly isReadOnly?: ((path: Path) => boolean) | undefined;
}

/** The parts that a method may use to answer one request. */
export interface Context {
  readonly exchange: Exchange;
  /** The request of `exchange`, which reads its body. */
  readonly request: IncomingMessage;
  /** The path in the request line, decoded once. */
  readonly path: Path;
  /** The path in the request line ends with a slash. */
  readonly hasTrailingSlash: boolean;
  /** The user's name; `''` on a drive without users. */
  readonly principal: string;
  readonly drive: Drive;
  readonly clock: Clock;
  readonly log: Log;
  readonly randomUuid: () => string;
  readonly xml: XmlReader;
}

/** Answers the request. Throws `FileError` or `DavError` to refuse it. */
export type Method = (context: Context) => Promise<void>;
