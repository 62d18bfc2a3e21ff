import type { LookupError, Metadata, Nested, Tag } from './files.ts';

/** The types of `files/search_v2` and `files/search/continue_v2`. */

export interface SearchV2Arg {
  readonly query: string;
  readonly options?: {
    /** `''` is the root. */
    readonly path?: string;
    /** 1 to 1000. */
    readonly max_results?: number;
    readonly file_status?: Tag<'active' | 'deleted'>;
    /** Searches names only, not what is in the files. */
    readonly filename_only?: boolean;
  };
}

export interface SearchV2ContinueArg {
  readonly cursor: string;
}

export interface SearchV2Result {
  readonly matches: readonly { readonly metadata: Nested<'metadata', Metadata> | Tag<'other'> }[];
  readonly has_more: boolean;
  /** Present with `has_more`. */
  readonly cursor?: string;
}

export type SearchError =
  | Nested<'path', LookupError>
  | Nested<'invalid_argument', string>
  | Tag<'internal_error' | 'other'>;
