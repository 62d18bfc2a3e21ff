import type { FileMetadata, FolderMetadata, Metadata, Timestamp } from '../../wire/files.ts';
import type { Stored, StoredDeletion, StoredFile, StoredFolder } from '../storage/storage.ts';

/** FileMetadata where the declared type is just that: without a `.tag`. */
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

/** FolderMetadata, likewise. Folders have no times on the wire. */
export function folderMetadata(folder: StoredFolder): FolderMetadata {
  return {
    name: folder.name,
    path_lower: folder.pathLower,
    path_display: folder.pathDisplay,
    id: folder.id,
  };
}

/** Fields that are there only where they were asked for. */
export interface AskedFields {
  readonly explicitMembers: boolean;
  readonly restorable: boolean;
}

const NONE_ASKED: AskedFields = { explicitMembers: false, restorable: false };

/** Metadata where the declared type is the base, and a `.tag` tells which of the three it is. */
export function metadata(stored: Stored | StoredDeletion, asked: AskedFields = NONE_ASKED): Metadata {
  switch (stored.kind) {
    case 'file':
      return {
        '.tag': 'file',
        ...fileMetadata(stored),
        // Files are shared by links here, and not with members.
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

/** `%Y-%m-%dT%H:%M:%SZ`: the wire has whole seconds, cut and not rounded. */
export function wireTime(ms: number): Timestamp {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** What a listing's cursor says of the fields that its entries are to have; nothing where it asks for none. */
export function withAsked(cursor: string, { explicitMembers, restorable }: AskedFields): string {
  const letters = `${explicitMembers ? 'm' : ''}${restorable ? 'r' : ''}`;
  return letters === '' ? cursor : `asked.${letters}.${cursor}`;
}

const ASKED_CURSOR = /^asked\.(m?r?)\.(.+)$/s;

/** The cursor that `withAsked` was given, and what it was told. */
export function askedIn(cursor: string): { readonly inner: string; readonly asked: AskedFields } {
  const [, letters = '', inner = cursor] = ASKED_CURSOR.exec(cursor) ?? [];
  return { inner, asked: { explicitMembers: letters.includes('m'), restorable: letters.includes('r') } };
}
