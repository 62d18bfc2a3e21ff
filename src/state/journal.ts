import type { Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';
import type { Owners } from './owners.ts';

/** A write that was acknowledged and is not at the service yet. Immutable: a change makes a new value. */
export interface PendingWrite {
  readonly id: string;
  /** In display case. */
  readonly path: Path;
  /** The id of the file that it replaces, or what a new one is called by until the service has given it an id. */
  readonly fileId: string;
  readonly sizeBytes: number;
  readonly contentHash: string;
  /** Whole seconds, as the service keeps them, in ms since 1970. */
  readonly modifiedMs: number;
  readonly acceptedMs: number;
  /** Not to be sent before, in ms since 1970: an empty file waits for the body that is about to follow. */
  readonly dueMs: number;
  /** The revision that it is to replace at the service; `undefined`: nothing was there. */
  readonly replaces: string | undefined;
  /** The content hash of that revision: a move at the service gives the same content another revision. */
  readonly replacesHash: string | undefined;
  /** The id of the folder that it was accepted into; `undefined`: the root of the drive, or not known. */
  readonly folderId: string | undefined;
}

/** A body that has arrived whole. On disk only with the write that it becomes part of; else to be discarded. */
export interface StagedBody {
  readonly sizeBytes: number;
  readonly contentHash: string;
}

/** A file in the lost-and-found folder, and what is known of it. */
export interface LostWrite {
  /** Of the file. */
  readonly name: string;
  readonly path: string | undefined;
  readonly sizeBytes: number;
  readonly writtenMs: number | undefined;
  readonly reason: string | undefined;
}

/** The pending writes of one drive. What a promise acknowledged is on disk and survives a kill. */
export interface Journal {
  /** In the order in which they were accepted. */
  all(): Promise<readonly PendingWrite[]>;
  /** Takes all of `body`. Throws `JournalFull`, `StateUnwritable`, or what `body` throws; then nothing is left of it. */
  stage(body: AsyncIterable<Uint8Array>): Promise<StagedBody>;
  discard(body: StagedBody): Promise<void>;
  /**
   * Keeps `write` with its body, in place of the one with the id `supersedes`, in one step. Those that come
   * together share their fsync. Throws `JournalFull`, `StateUnwritable`.
   */
  accept(write: PendingWrite, body: StagedBody, supersedes?: string): Promise<void>;
  /** Takes over all of `write` but its body. */
  change(write: PendingWrite): Promise<void>;
  /** Drops the writes with these ids and their bodies; those in `changed` change in the same step. */
  forget(ids: readonly string[], changed?: readonly PendingWrite[]): Promise<void>;
  /** The bytes of its body. Throws `BodyGone` when there is no such write any more. */
  read(id: string, range?: ByteRange): AsyncIterable<Uint8Array>;
  /** Moves its body to the lost-and-found folder, with `reason` beside it, and forgets it. Returns where it is now. */
  lose(write: PendingWrite, reason: string): Promise<string>;
  lost(): Promise<readonly LostWrite[]>;
  /** The bytes of the lost file called `name`. */
  readLost(name: string): AsyncIterable<Uint8Array>;
  /** Deletes the lost file called `name`. */
  dropLost(name: string): Promise<void>;
  /** How many files lie in the drive's lost-and-found folder. */
  readonly lostFiles: number;
}

/** The journals of all drives, in the data directory. */
export interface Journals {
  /** Whose the pending writes are. */
  readonly owners: Owners;
  drive(name: string): Promise<Journal>;
  close(): Promise<void>;
}

/** The disk has no room for another write. */
export class JournalFull extends Error {
  override readonly name = 'JournalFull';
}

/** The write has landed, or another one has taken its place. */
export class BodyGone extends Error {
  override readonly name = 'BodyGone';
}
