import { nameOf, type Path } from '../util/path.ts';
import type { Situation } from './caller.ts';
import type { Client } from './context.ts';
import { timestampOf } from './drive-root.ts';
import { ApiError } from './errors.ts';
import { statOf } from './listing.ts';
import type { CommitOptions, FileEntry, WriteMode } from './remote.ts';
import type { CommitInfo, WriteMode as WireMode } from './wire.ts';

/** A commit of content as we asked for it: what tells it from somebody else's. */
export interface Commit {
  readonly path: Path;
  readonly options: CommitOptions;
  readonly sizeBytes: number;
  /** Absent when the caller does not know it. */
  readonly contentHash?: string;
  /** By our clock, when the commit was first asked for. */
  readonly startedMs: number;
}

export function commitInfo({ root }: Client, path: Path, { mode, modifiedMs }: CommitOptions): CommitInfo {
  return {
    path: root.belowRoot(path),
    mode: wireMode(mode),
    autorename: false,
    mute: false,
    // Strict: `add` refuses equal content too, and `update` a file that is no longer there.
    strict_conflict: mode.if !== 'any',
    ...(modifiedMs !== undefined && { client_modified: timestampOf(modifiedMs) }),
  };
}

function wireMode(mode: WriteMode): WireMode {
  switch (mode.if) {
    case 'any':
      return { '.tag': 'overwrite' };
    case 'absent':
      return { '.tag': 'add' };
    case 'rev':
      return { '.tag': 'update', update: mode.rev };
  }
}

/**
 * What a failed commit came to, by what is there now: our file, or `undefined` when it was not done. The
 * answer may have been lost, and then the next try would meet our own file and call it a conflict.
 */
export async function resolveCommit(
  client: Client,
  commit: Commit,
  { failure, outcomeUnknown, trouble }: Situation,
  signal: AbortSignal | undefined,
): Promise<FileEntry | undefined> {
  const conflict = failure.error.failure === 'conflict-file';
  if (!outcomeUnknown && !(conflict && commit.options.mode.if === 'rev')) return undefined;
  const found = await statOf(client, commit.path, { signal, trouble });
  if (found?.kind !== 'file') return undefined;
  const startedMs = client.caller.serviceTime(commit.startedMs);
  const done = outcomeUnknown ? isOurs(found, { ...commit, startedMs }) : isUnchanged(found, commit);
  return done ? found : undefined;
}

/** Whether what is there came of this commit, begun at a time by the service's clock, or makes it needless. */
function isOurs(found: FileEntry, commit: Commit): boolean {
  const { mode } = commit.options;
  if (found.sizeBytes !== commit.sizeBytes) return false;
  // A new file is called as we asked: one in another case was there before.
  if (mode.if === 'absent' && found.name !== nameOf(commit.path)) return false;
  // The service's times are whole seconds.
  const since = found.committedMs >= Math.floor(commit.startedMs / 1000) * 1000;
  if (commit.contentHash === undefined || found.contentHash === undefined) {
    return since && hasOurTime(found, commit) && !(mode.if === 'rev' && found.rev === mode.rev);
  }
  if (found.contentHash !== commit.contentHash) return false;
  // Equal content that was there before breaks the condition of `absent`, and only that.
  return mode.if !== 'absent' || since;
}

/** Strict `update` may refuse content that is there already, though the revision is the one named. */
function isUnchanged(found: FileEntry, { options: { mode }, contentHash }: Commit): boolean {
  return (
    mode.if === 'rev' &&
    found.rev === mode.rev &&
    contentHash !== undefined &&
    found.contentHash === contentHash
  );
}

function hasOurTime(found: FileEntry, { options: { modifiedMs } }: Commit): boolean {
  return modifiedMs === undefined || found.modifiedMs === Math.floor(modifiedMs / 1000) * 1000;
}

/** Throws `hash-mismatch` when the service committed something else than our bytes. */
export function checkContent(
  file: FileEntry,
  commit: Pick<Commit, 'contentHash' | 'sizeBytes'>,
  route: string,
): FileEntry {
  const { contentHash, sizeBytes } = commit;
  const differs =
    file.sizeBytes !== sizeBytes ||
    (contentHash !== undefined && file.contentHash !== undefined && file.contentHash !== contentHash);
  if (differs)
    throw new ApiError('hash-mismatch', `${route}: the storage service holds other content than was sent`);
  return file;
}
