import type {
  FileMetadata,
  LookupError,
  Nested,
  PathLookupError,
  Tag,
  Timestamp,
  WriteError,
} from './files.ts';

/** Argument of `files/list_revisions`. */
export interface ListRevisionsArg {
  readonly path: string;
  /** `path` (default): all files that were at the path. `id`: the file that is at the path, wherever it was before. */
  readonly mode?: Tag<'path' | 'id'>;
  /** Default 10, maximum 100. */
  readonly limit?: number;
}

export interface ListRevisionsResult {
  readonly is_deleted: boolean;
  /** Present if the file was deleted. */
  readonly server_deleted?: Timestamp;
  /** Newest first. */
  readonly entries: readonly FileMetadata[];
  readonly has_more: boolean;
}

export type ListRevisionsError =
  | PathLookupError
  | Tag<'invalid_before_rev' | 'before_rev_not_supported' | 'other'>;

/** Argument of `files/restore`. The result is FileMetadata, of a new revision. */
export interface RestoreArg {
  readonly path: string;
  readonly rev: string;
}

export type RestoreError =
  | Nested<'path_lookup', LookupError>
  | Nested<'path_write', WriteError>
  | Tag<'invalid_revision' | 'in_progress' | 'other'>;
