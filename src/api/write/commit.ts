import { type Moment, momentNow } from '../../util/clock.ts';
import { contentHashOf } from '../../util/content-hash.ts';
import { nameOf, type Path } from '../../util/path.ts';
import type {
  CommitInfo,
  FileMetadata,
  UploadArg,
  UploadSessionFinishArg,
  WriteMode as WireMode,
} from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { timestampOf } from '../drive-root.ts';
import { ApiError } from '../errors.ts';
import { revisionsOf } from '../history.ts';
import { statOf } from '../list-folder.ts';
import type { Lane } from '../queue.ts';
import type { FileEntry, WriteMode } from '../remote.ts';
import { type CallRequest, COMMIT_TIMEOUT, parsed, uploadRequest } from '../request.ts';
import type { Situation, Trouble } from '../retry.ts';
import type { CommitOptions, SessionCommit, UploadCalls } from './upload-calls.ts';

/** A requested commit, with the facts that distinguish it from another client's. */
export interface Commit {
  readonly path: Path;
  readonly options: CommitOptions;
  readonly sizeBytes: number;
  readonly contentHash?: string;
  /** Time of the first attempt. */
  readonly started: Moment;
}

interface TimedCommit extends Commit {
  /** `started` by the service's clock. */
  readonly startedMs: number;
}

function commitInfo({ root }: Client, path: Path, { mode, modifiedMs }: CommitOptions): CommitInfo {
  return {
    path: root.belowRoot(path),
    mode: wireMode(mode),
    autorename: false,
    mute: false,
    // With this flag, `add` refuses equal content too, and `update` refuses a file that no longer exists.
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

/** Returns the argument of `finish`, which is also that of an entry of `finish_batch_v2`. */
export function finishArg(client: Client, commit: SessionCommit): UploadSessionFinishArg {
  const { session, sizeBytes, path, options } = commit;
  return {
    cursor: { session_id: session.id, offset: sizeBytes },
    commit: commitInfo(client, path, options),
  };
}

/** The calls that commit one file each, over HTTP. */
export function singleCommitsOf(
  client: Client,
): Pick<UploadCalls, 'upload' | 'uploadsAtOnce' | 'commitsAreShared' | 'finishSession'> {
  return {
    async upload(path, body, { contentHash = contentHashOf(body), yields = false, ...options }, signal) {
      const arg: UploadArg = { ...commitInfo(client, path, options), content_hash: contentHash };
      const commit = { path, options, sizeBytes: body.length, contentHash, started: momentNow(client.clock) };
      const request = { ...uploadRequest('files/upload', arg, body), yields };
      return commitBy(client, commit, { request, lane: 'upload', signal });
    },

    uploadsAtOnce: () => client.caller.uploadsAtOnce,

    commitsAreShared: () => client.caller.commitsAreShared,

    // A commit uses its session up, so a retry after a lost answer is refused: `commitBy` looks for the file then.
    async finishSession(commit, signal) {
      const call = uploadRequest('files/upload_session/finish', finishArg(client, commit), new Uint8Array());
      const request = { ...call, answerTimeout: COMMIT_TIMEOUT, yields: true };
      return commitBy(
        client,
        { ...commit, started: momentNow(client.clock) },
        { request, lane: 'commit', signal },
      );
    },
  };
}

/**
 * Makes the call that commits `commit`. When a retry meets the file of a first try whose answer was lost, that file is
 * the result. Throws `hash-mismatch` too.
 */
async function commitBy(
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

/** Throws `hash-mismatch` when the service committed other bytes than ours. */
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
    throw new ApiError('hash-mismatch', `${route}: the storage service stored other content than was sent`);
  return file;
}

/**
 * Finds out what became of a failed commit from what is at its path now. Returns our file, or `undefined` when the
 * commit was not made. Without this, a retry after a lost answer would meet our own file and report a conflict.
 */
export async function resolveCommit(
  client: Client,
  commit: Commit,
  { failure, outcomeUnknown, trouble }: Omit<Situation, 'number'>,
  signal: AbortSignal | undefined,
): Promise<FileEntry | undefined> {
  const conflict = failure.error.failure === 'conflict-file';
  if (!outcomeUnknown && !(conflict && commit.options.mode.if === 'rev')) return undefined;
  const found = await statOf(client, commit.path, { signal, trouble });
  if (!outcomeUnknown) return found?.kind === 'file' && isUnchanged(found, commit) ? found : undefined;
  const timed = { ...commit, startedMs: client.caller.serviceTime(commit.started) };
  if (found?.kind === 'file' && isOurs(client, found, timed)) return found;
  // It may have succeeded and been replaced since: reporting a refusal would cause a second write.
  return failure.reason === 'refused' ? replacedCommit(client, timed, { signal, trouble }) : undefined;
}

/** How many revisions are searched. Between a lost answer and the next try there are a few at most. */
const REVISIONS_MAX = 100;

/** Returns the revision that this commit made, if it has been replaced or deleted since. */
async function replacedCommit(
  client: Client,
  commit: TimedCommit,
  how: { readonly signal: AbortSignal | undefined; readonly trouble: Trouble },
): Promise<FileEntry | undefined> {
  const { mode } = commit.options;
  const { files: newestFirst } = await revisionsOf(client, commit.path, { limit: REVISIONS_MAX }, how);
  const base = mode.if === 'rev' ? newestFirst.findIndex(({ rev }) => rev === mode.rev) : -1;
  const newer = base < 0 ? newestFirst : newestFirst.slice(0, base);
  return newer.find((file) => isSince(file, commit) && isOurs(client, file, commit));
}

/** Whether `found` was made by this commit, or makes it unnecessary. */
function isOurs({ root }: Client, found: FileEntry, commit: TimedCommit): boolean {
  const { mode } = commit.options;
  if (found.sizeBytes !== commit.sizeBytes) return false;
  // A new file has the requested name: one in another letter case was there before.
  if (mode.if === 'absent' && root.ownName(found.name) !== root.ownName(nameOf(commit.path))) return false;
  const since = isSince(found, commit);
  if (commit.contentHash === undefined || found.contentHash === undefined) {
    return since && hasOurTime(found, commit) && !(mode.if === 'rev' && found.rev === mode.rev);
  }
  if (found.contentHash !== commit.contentHash) return false;
  // Equal content that was there before fails only the condition `absent`.
  return mode.if !== 'absent' || since;
}

function isSince(found: FileEntry, { startedMs }: TimedCommit): boolean {
  // The service's times are whole seconds.
  return found.committedMs >= Math.floor(startedMs / 1000) * 1000;
}

/** Whether the file already has our content in the named revision, which a strict `update` may refuse. */
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
