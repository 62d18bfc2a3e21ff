import { type Path, PathError, parentOf } from '../util/path.ts';
import type { FileMetadata } from '../wire/files.ts';
import type { ListRevisionsArg, ListRevisionsResult, RestoreArg } from '../wire/revisions.ts';
import type { Client } from './context.ts';
import { type DriveRoot, timeOf } from './drive-root.ts';
import type { FileEntry, Remote, Revisions, RevisionsOptions } from './remote.ts';
import { parsed, rpcRequest } from './request.ts';
import type { Trouble } from './retry.ts';

type History = Pick<Remote, 'revisions' | 'restore'>;

/** The calls for the former revisions of files. */
export function historyOf(client: Client): History {
  return {
    revisions: (path, options, signal) => revisionsOf(client, path, options, { signal }),
    restore: (path, rev, signal) => restore(client, path, rev, signal),
  };
}

/** `list_revisions`. See `Remote.revisions`. */
export async function revisionsOf(
  { caller, root }: Client,
  path: Path,
  { limit, followsMoves = false }: RevisionsOptions,
  how: { readonly signal: AbortSignal | undefined; readonly trouble?: Trouble },
): Promise<Revisions> {
  const arg: ListRevisionsArg = {
    path: root.belowRoot(path),
    ...(followsMoves && { mode: { '.tag': 'id' } }),
    limit,
  };
  return caller.call({
    request: rpcRequest('files/list_revisions', arg),
    lane: 'metadata',
    read({ text }): Revisions {
      const { entries, has_more, is_deleted, server_deleted } = parsed<ListRevisionsResult>(text);
      return {
        files: entries.map((entry) => revisionOf(root, entry, parentOf(path))),
        hasMore: has_more === true,
        isDeleted: is_deleted === true,
        ...(server_deleted !== undefined && { deletedMs: timeOf(server_deleted) }),
      };
    },
    ...how,
  });
}

/** Reads a revision. The file may be outside the drive by now, or where no path can name it. */
function revisionOf(root: DriveRoot, entry: FileMetadata, folder: Path): FileEntry {
  try {
    return root.file(entry, { path: folder });
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    return root.file(entry, { path: folder, parts: [] });
  }
}

/** After a lost answer the call is repeated: at worst the same content becomes current twice. */
async function restore(
  { caller, root }: Client,
  path: Path,
  rev: string,
  signal: AbortSignal | undefined,
): Promise<FileEntry> {
  const arg: RestoreArg = { path: root.belowRoot(path), rev };
  return caller.call({
    request: rpcRequest('files/restore', arg),
    lane: 'commit',
    signal,
    read: ({ text }) => root.file(parsed<FileMetadata>(text)),
  });
}
