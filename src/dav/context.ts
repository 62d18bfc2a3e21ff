import type { ChangeLog, Entry, Files } from '../drive/files.ts';
import type { RequestState } from '../state/state.ts';
import type { Clock } from '../util/clock.ts';
import type { HttpRequest } from '../util/http-messages.ts';
import type { Log } from '../util/log.ts';
import type { Path } from '../util/path.ts';
import type { Exchange } from './exchange.ts';
import type { ComputedChecksums } from './properties/computed-checksums.ts';
import type { XmlReader } from './xml/xml-reader.ts';

/** A drive as the protocol sees it. */
export interface Drive {
  readonly files: Files;
  /** The folders of former versions and of deleted files in `files`, where `isReadOnly` is true. Absent without them. */
  readonly historyFolders?: HistoryFolders | undefined;
  /** `undefined`: the drive cannot tell what has changed since an earlier moment. */
  readonly changeLog?: ChangeLog | undefined;
  readonly state: RequestState;
  /** Awaited before a request is answered, so that it sees what other gateways have acknowledged. */
  readonly catchUp?: (() => Promise<void>) | undefined;
  /** Whether the user may not change what is at `path`. Absent if the user may change everything. */
  readonly isReadOnly?: ((path: Path) => boolean) | undefined;
  /** The folders in which the rights of the user change. Absent if the user may change everything. */
  readonly places?: readonly { readonly isReadOnly: boolean }[];
}

/** Folders of a drive that show its past. */
interface HistoryFolders {
  /** Whether `path` is one of the folders or lies in one. */
  owns(path: Path): boolean;
  /** Returns the path of the folder that has the older versions of a file. */
  versionsOf(path: Path): Path;
  /** The files of the drive without the folders, for searches and reports about all of them. */
  readonly present: Files;
}

/** Returns the files that are there now, without the folders that show the past. */
export function presentFiles({ files, historyFolders }: Drive): Files {
  return historyFolders?.present ?? files;
}

/** The user that a request was admitted for, and the drive as this user sees it. */
export interface Access {
  /** `undefined` when the drive is open to all. */
  readonly user: { readonly name: string } | undefined;
  readonly drive: Drive;
}

/** Answers one authenticated request. */
export type DavHandler = (exchange: Exchange, access: Access) => Promise<void>;

/** The parts that a method may use to answer one request. */
export interface Context {
  readonly exchange: Exchange;
  /** The request of `exchange`, which reads its body. */
  readonly request: HttpRequest;
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
  readonly checksums: ComputedChecksums;
}

/** Returns the entry at the request's path: at once when the drive knows it. */
export function entryHere({ drive, path, exchange }: Context): Entry | Promise<Entry | undefined> {
  return drive.files.known(path) ?? drive.files.stat(path, exchange.signal);
}

/** The parts of a context that all requests share. */
export type SharedContext = Pick<Context, 'clock' | 'log' | 'randomUuid' | 'xml' | 'checksums'>;

/** Answers the request. Throws `FileError` or `DavError` to refuse it. */
export type Method = (context: Context) => Promise<void>;
