import type { Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';
import type { Owners } from './owners.ts';

/** An acknowledged write that is not at the service yet. Immutable. */
export interface PendingWrite {
  readonly id: string;
  /** Path in display case. */
  readonly path: Path;
  /** Id of the file that it replaces, or the temporary id of a new file. */
  readonly fileId: string;
  readonly sizeBytes: number;
  readonly contentHash: string;
  /** Modification time in whole seconds, as the service stores it, in ms since 1970. */
  readonly modifiedMs: number;
  readonly acceptedMs: number;
  /** Earliest time to send it, in ms since 1970: an empty file waits for the body that usually follows. */
  readonly dueMs: number;
  /** The revision that it replaces at the service; `undefined`: there was no file. */
  readonly replaces: string | undefined;
  /** Content hash of that revision: a move at the service gives the same content another revision. */
  readonly replacesHash: string | undefined;
  /** Id of the folder that it was accepted into; `undefined`: the root of the drive, or unknown. */
  readonly folderId: string | undefined;
}

/** A complete body. It becomes durable with its write, or must be discarded. */
export interface StagedBody {
  readonly sizeBytes: number;
  readonly contentHash: string;
}

/** A file in the lost-and-found folder, with the facts about its write. */
export interface LostWrite {
  /** Name of the file. */
  readonly name: string;
  readonly path: string | undefined;
  readonly sizeBytes: number;
  readonly writtenMs: number | undefined;
  readonly reason: string | undefined;
}

/** The pending writes of one drive. A resolved promise means that the change is on disk and survives a kill. */
export interface Journal {
  /** Returns the writes in the order in which they were accepted. */
  all(): Promise<readonly PendingWrite[]>;
  /** Reads all of `body`. Throws `JournalFull`, `StateUnwritable`, or the error of `body`, and then keeps nothing. */
  stage(body: AsyncIterable<Uint8Array>): Promise<StagedBody>;
  discard(body: StagedBody): Promise<void>;
  /**
   * Adds `write` with its body, and removes the write with the id `supersedes`, in one step. Concurrent calls share one
   * fsync. Throws `JournalFull`, `StateUnwritable`.
   */
  accept(write: PendingWrite, body: StagedBody, supersedes?: string): Promise<void>;
  /** Replaces all of `write` except its body. */
  change(write: PendingWrite): Promise<void>;
  /** Removes the writes with these ids and their bodies, and changes those in `changed` in the same step. */
  forget(ids: readonly string[], changed?: readonly PendingWrite[]): Promise<void>;
  /** Yields the bytes of a write's body. Throws `BodyGone` when the write no longer exists. */
  read(id: string, range?: ByteRange): AsyncIterable<Uint8Array>;
  /**
   * Moves the body of a write to the lost-and-found folder, beside a file with `reason`, and removes the write. Keeps
   * only the reason when the body cannot be read. Returns its new path. Throws `BodyGone` when the write no longer exists.
   */
  lose(write: PendingWrite, reason: string): Promise<string>;
  lost(): Promise<readonly LostWrite[]>;
  /** Yields the bytes of the lost file `name`. */
  readLost(name: string): AsyncIterable<Uint8Array>;
  /** Deletes the lost file `name`. */
  dropLost(name: string): Promise<void>;
  /** Number of files in the drive's lost-and-found folder. */
  readonly lostFiles: number;
}

/** The journals of all drives, in the data directory. */
export interface Journals {
  /** Owners of the pending writes. */
  readonly owners: Owners;
  drive(name: string): Promise<Journal>;
  close(): Promise<void>;
}

/** The disk has no room for another write. */
export class JournalFull extends Error {
  override readonly name = 'JournalFull';
}

/** The write has been sent, or another one has replaced it. */
export class BodyGone extends Error {
  override readonly name = 'BodyGone';
}
