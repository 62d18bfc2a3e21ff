import type { Moment } from '../../util/clock.ts';
import { nameOf, type Path } from '../../util/path.ts';
import type {
  CommitInfo,
  FileMetadata,
  ListRevisionsArg,
  ListRevisionsResult,
  WriteMode as WireMode,
} from '../../wire/files.ts';
import type { Situation, Trouble } from '../caller.ts';
import type { Client } from '../context.ts';
import { timestampOf } from '../drive-root.ts';
import { ApiError } from '../errors.ts';
import { statOf } from '../list-folder.ts';
import type { Lane } from '../queue.ts';
import type { CommitOptions, FileEntry, WriteMode } from '../remote.ts';
import { type CallRequest, parsed, rpcRequest } from '../request.ts';

/** A commit of content as we asked for it: what tells it from somebody else's. */
export interface Commit {
  readonly path: Path;
  readonly options: CommitOptions;
  readonly sizeBytes: number;
  /** Absent when the caller does not know it. */
  readonly contentHash?: string;
  /** When the commit was first asked for. */
  readonly started: Moment;
}

interface TimedCommit extends Commit {
  /** When it was first asked for, by the service's clock. */
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
  if (!outcomeUnknown) return found?.kind === 'file' && isUnchanged(found, commit) ? found : undefined;
  const timed = { ...commit, startedMs: client.caller.serviceTime(commit.started) };
  if (found?.kind === 'file' && isOurs(found, timed)) return found;
  // To call it refused when it was done, and replaced since, would make the writer do it twice.
  return failure.reason === 'refused' ? replacedCommit(client, timed, { signal, trouble }) : undefined;
}

/** Revisions that are looked through; between a lost answer and the next try there are a few at most. */
const REVISIONS_MAX = 100;

/** What this commit made, if somebody has replaced or deleted it since. */
async function replacedCommit(
  { caller, root }: Client,
  commit: TimedCommit,
  how: { readonly signal: AbortSignal | undefined; readonly trouble: Trouble },
): Promise<FileEntry | undefined> {
  const { mode } = commit.options;
  const arg: ListRevisionsArg = { path: root.toWire(commit.path), limit: REVISIONS_MAX };
  const newestFirst = await caller.call({
    request: rpcRequest('files/list_revisions', arg),
    lane: 'metadata',
    read: ({ text }) => parsed<ListRevisionsResult>(text).entries.map((entry) => root.file(entry)),
    ...how,
  });
  const base = mode.if === 'rev' ? newestFirst.findIndex(({ rev }) => rev === mode.rev) : -1;
  const newer = base < 0 ? newestFirst : newestFirst.slice(0, base);
  return newer.find((file) => isSince(file, commit) && isOurs(file, commit));
}

/** Whether what is there came of this commit, begun at a time by the service's clock, or makes it needless. */
function isOurs(found: FileEntry, commit: TimedCommit): boolean {
  const { mode } = commit.options;
  if (found.sizeBytes !== commit.sizeBytes) return false;
  // A new file is called as we asked: one in another case was there before.
  if (mode.if === 'absent' && found.name !== nameOf(commit.path)) return false;
  const since = isSince(found, commit);
  if (commit.contentHash === undefined || found.contentHash === undefined) {
    return since && hasOurTime(found, commit) && !(mode.if === 'rev' && found.rev === mode.rev);
  }
  if (found.contentHash !== commit.contentHash) return false;
  // Equal content that was there before breaks the condition of `absent`, and only that.
  return mode.if !== 'absent' || since;
}

function isSince(found: FileEntry, { startedMs }: TimedCommit): boolean {
  // The service's times are whole seconds.
  return found.committedMs >= Math.floor(startedMs / 1000) * 1000;
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

/**
 * The call that makes `commit`. A second try may meet the work of a first whose answer was lost: what is there then is
 * the result. Throws also `hash-mismatch`.
 */
export async function commitBy(
  client: Client,
  commit: Commit,
  call: { readonly request: CallRequest; readonly lane: Lane; readonly signal: AbortSignal | undefined },
): Promise<FileEntry> {
  const file = await client.caller.call({
    ...call,
    read: ({ text }) => client.root.file(parsed<FileMetadata>(text)),
    async resolve(situation) {
      const done = await resolveCommit(client, commit, situation, call.signal);
      return done && { result: done };
    },
  });
  return checkContent(file, commit, call.request.route);
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
