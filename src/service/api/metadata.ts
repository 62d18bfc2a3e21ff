import type { FileMetadata, FolderMetadata, Metadata, Timestamp } from '../../wire/files.ts';
import type { Stored, StoredDeletion, StoredFile, StoredFolder } from '../storage/storage.ts';

/** Returns FileMetadata without a `.tag`, for results declared as that type. */
export function fileMetadata(file: StoredFile): FileMetadata {
  return {
    name: file.name,
    path_lower: file.pathLower,
    path_display: file.pathDisplay,
    id: file.id,
    client_modified: wireTime(file.clientModifiedMs),
    server_modified: wireTime(file.serverModifiedMs),
    rev: file.rev,
    size: file.sizeBytes,
    is_downloadable: true,
    content_hash: file.contentHash,
  };
}

/** Returns FolderMetadata without a `.tag`. Folders have no times in the API. */
export function folderMetadata(folder: StoredFolder): FolderMetadata {
  return {
    name: folder.name,
    path_lower: folder.pathLower,
    path_display: folder.pathDisplay,
    id: folder.id,
  };
}

/** Optional fields that a call asks for. */
export interface AskedFields {
  readonly explicitMembers: boolean;
  readonly restorable: boolean;
}

const NONE_ASKED: AskedFields = { explicitMembers: false, restorable: false };

/** Returns Metadata with a `.tag`, for results declared as the base type. */
export function metadata(stored: Stored | StoredDeletion, asked: AskedFields = NONE_ASKED): Metadata {
  switch (stored.kind) {
    case 'file':
      return {
        '.tag': 'file',
        ...fileMetadata(stored),
        // Files here are shared by links, never with members.
        ...(asked.explicitMembers && { has_explicit_shared_members: false }),
      };
    case 'folder':
      return { '.tag': 'folder', ...folderMetadata(stored) };
    case 'deleted':
      return {
        '.tag': 'deleted',
        name: stored.name,
        path_lower: stored.pathLower,
        path_display: stored.pathDisplay,
        ...(asked.restorable && { is_restorable: stored.restorable }),
      };
  }
}

/** Formats a time as `%Y-%m-%dT%H:%M:%SZ`; the API has whole seconds, rounded down. */
export function wireTime(ms: number): Timestamp {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Adds the optional fields that a listing asked for to its cursor. */
export function withAsked(cursor: string, { explicitMembers, restorable }: AskedFields): string {
  const letters = `${explicitMembers ? 'm' : ''}${restorable ? 'r' : ''}`;
  return letters === '' ? cursor : `asked.${letters}.${cursor}`;
}

const ASKED_CURSOR = /^asked\.(m?r?)\.(.+)$/s;

/** Returns the cursor that was given to `withAsked`, and the optional fields. */
export function askedIn(cursor: string): { readonly inner: string; readonly asked: AskedFields } {
  const [, letters = '', inner = cursor] = ASKED_CURSOR.exec(cursor) ?? [];
  return { inner, asked: { explicitMembers: letters.includes('m'), restorable: letters.includes('r') } };
}
