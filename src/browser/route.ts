import { DavError } from '../dav/errors.ts';
import type { Exchange } from '../dav/exchange.ts';
import type { Changes } from '../drive/changes.ts';
import type { Files, NameSearch, Thumbnails } from '../drive/files.ts';
import type { History } from '../drive/history.ts';
import type { RequestState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { DEPTH_MAX, type Path, PathError, pathOf } from '../util/path.ts';
import type { Streams } from './streams.ts';
import type { Uploads } from './upload.ts';

/** A write that was acknowledged and is not at the service. */
interface KeptWrite {
  readonly id: string;
  /** `lost`: the service has refused it for good, and it is kept beside the drive. */
  readonly state: 'waiting' | 'lost';
  /** `undefined`: unknown. */
  readonly path: string | undefined;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly writtenMs: number | undefined;
  /** Why it is not at the service. */
  readonly reason: string | undefined;
}

/** The outcome of a command; `refused` says why nothing was done. */
interface Outcome {
  readonly refused?: string;
}

/** The acknowledged writes of a drive that the service does not have. */
export interface KeptWrites {
  list(): Promise<readonly KeptWrite[]>;
  /** Returns the bytes of a write; `undefined` unless exactly one has this id. */
  body(
    id: string,
  ): Promise<{ readonly write: KeptWrite; readonly bytes: AsyncIterable<Uint8Array> } | undefined>;
  /** Sends a pending write now, or restores a lost one to its path. */
  retry(id: string): Promise<Outcome>;
  discard(id: string): Promise<Outcome>;
}

interface Place {
  readonly path: Path;
  readonly isReadOnly: boolean;
  /** Whether deletions there can be undone. Off if the drive is told to delete for good. */
  readonly keepsDeleted: boolean;
}

/** A drive as the routes see it. */
export interface Drive {
  readonly name: string;
  /** What its users may do, as text. The same rights may have another object later. */
  readonly rights: string;
  /** The folders that the user may change or only read, with everything below them. */
  readonly places: readonly Place[];
  /** Folders that only WebDAV shows; they are in none of `files`. */
  readonly hiddenPaths?: readonly Path[];
  readonly files: Files & NameSearch & Thumbnails;
  readonly history: History;
  readonly state: RequestState;
  /** Awaited before a request is answered, so that it sees what other gateways have acknowledged. */
  readonly catchUp?: (() => Promise<void>) | undefined;
  /** Whether the user may not change what is at `path`. Absent if the user may change everything. */
  readonly isReadOnly?: ((path: Path) => boolean) | undefined;
  readonly changes: Changes;
  /** `undefined` if writes never wait for the service. */
  readonly keptWrites?: KeptWrites | undefined;
}

/** An app password as its user sees it. */
interface ShownAppPassword {
  readonly id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  /** `undefined`: never. */
  readonly usedMs?: number;
}

/** The passwords that a user has made for single programs. */
export interface OwnAppPasswords {
  list(): Promise<readonly ShownAppPassword[]>;
  /** Makes one and returns it; `undefined` if the user has too many. */
  make(name: string): Promise<string | undefined>;
  /** Ends one at once; returns whether it was there. */
  end(id: string): Promise<boolean>;
}

/** What a user chooses for an upload link. */
export interface UploadLinkSettings {
  readonly path: Path;
  /** What senders read. */
  readonly label: string;
  readonly password?: string | undefined;
  /** Milliseconds since 1970. */
  readonly expiresMs?: number | undefined;
  /** Maximum size of all files together, in bytes. */
  readonly sizeBytesMax?: number | undefined;
}

/** An upload link as its user sees it. */
interface ShownUploadLink extends Omit<UploadLinkSettings, 'password'> {
  readonly id: string;
  readonly hasPassword: boolean;
  readonly createdMs: number;
  /** Size of the files that came by it, in bytes. */
  readonly usedBytes: number;
}

/** The links by which people without a login send files to a user. */
export interface OwnUploadLinks {
  list(): Promise<readonly ShownUploadLink[]>;
  /** Makes one and returns its address; `undefined` if the user has too many. */
  make(settings: UploadLinkSettings): Promise<string | undefined>;
  /** Ends one at once; returns whether it was there. */
  end(id: string): Promise<boolean>;
}

/** One request of the web application. */
export interface ApiExchange extends Exchange {
  /** The percent-encoded path. */
  readonly path: string;
  /** The address of the client. */
  readonly address: string;
  /** Whether it is left out of the metrics. */
  isMonitoring: boolean;
}

/** The parts that a route may use to answer one request. */
export interface Context {
  readonly exchange: ApiExchange;
  readonly signal: AbortSignal;
  /** Aborted when davgate takes no new requests: endless answers must end then. */
  readonly closing: AbortSignal;
  /** The user's name; `undefined` on a drive without a login. */
  readonly user: string | undefined;
  /** The token of a browser's session; `undefined` for every other login. */
  readonly csrfToken: string | undefined;
  /** The name of the provider at which that session began. */
  readonly providerName: string | undefined;
  /** Whether the session of the request has ended since. */
  readonly isOver: () => boolean;
  readonly drive: Drive;
  /** `undefined` for a user whose drive davgate does not know by the name alone. */
  readonly appPasswordsOf: (user: string, drive: Drive) => OwnAppPasswords | undefined;
  /** `undefined` in the same case. */
  readonly uploadLinksOf: (user: string | undefined, drive: Drive) => OwnUploadLinks | undefined;
  readonly input: Input;
  readonly streams: Streams;
  readonly uploads: Uploads;
  readonly clock: Clock;
  readonly log: Log;
}

/** A function that the web application calls at `/.davgate/api/NAME`. */
export interface Route {
  /** `POST` for everything that changes something. */
  readonly method: 'GET' | 'POST';
  /** Whether it changes the entry at `path`. A read-only user is refused then. */
  readonly changesDrive?: true;
  /**
   * Maximum size of the body, in bytes, of a POST that a page sends as a form, so that the browser itself saves the answer.
   * Such a function changes nothing, because a page of another site can send a form too.
   */
  readonly formBytesMax?: number;
  /** Whether the body of a POST is bytes of a file, which `run` reads; the values are in the query. */
  readonly takesBytes?: boolean;
  /** Answers the request. Throws `FileError` or `DavError` to refuse it. */
  readonly run: (context: Context) => Promise<void>;
}

/**
 * The named values that a request brings: in the query of a GET, or of a POST with bytes; as a JSON object of strings or a
 * form in any other POST.
 */
export class Input {
  constructor(private readonly values: ReadonlyMap<string, string>) {}

  /** Returns a value; `undefined` when it is missing or empty. */
  optional(name: string): string | undefined {
    return this.values.get(name) || undefined;
  }

  /** Returns a value. Throws `DavError` 400 when it is missing or empty. */
  text(name: string): string {
    const value = this.optional(name);
    if (value === undefined)
      throw new DavError(400, `"${name}" is missing; send it as text that is not empty`);
    return value;
  }

  /** Returns the path of a resource, which stands there unescaped: `/Photos/a b.jpg`. Throws `DavError` 400. */
  path(name: string): Path {
    return pathFrom(name, this.text(name).split('/').filter(Boolean));
  }
}

/** Maximum length of a path, in UTF-16 units: as long as one in the line of a request can be. */
const PATH_LENGTH_MAX = 32 * 1024;

/** Returns the path of `names`, which the value `input` has. Throws `DavError` 400. */
export function pathFrom(input: string, names: readonly string[]): Path {
  const length = names.reduce((sum, name) => sum + name.length + 1, 0);
  if (length > PATH_LENGTH_MAX)
    throw new DavError(
      400,
      `"${input}" has a path of ${length} characters; at most ${PATH_LENGTH_MAX} are allowed`,
    );
  if (names.length > DEPTH_MAX)
    throw new DavError(
      400,
      `"${input}" has a path of ${names.length} levels; at most ${DEPTH_MAX} are allowed`,
    );
  try {
    return pathOf(names);
  } catch (error) {
    if (error instanceof PathError) throw new DavError(400, `"${input}" is no path: ${error.message}`);
    throw error;
  }
}

/** Answers with `value` as JSON. */
export function answerJson(exchange: Exchange, value: unknown): Promise<void> {
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  };
  return exchange.answer({ status: 200, headers, body: JSON.stringify(value) });
}
