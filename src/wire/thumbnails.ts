import type { LookupError, Nested, Tag } from './files.ts';

/** The types of `files/get_thumbnail_v2`. */

export interface ThumbnailV2Arg {
  readonly resource: Nested<'path', string>;
  readonly format?: Tag<'jpeg' | 'png' | 'webp'>;
  readonly size?: Tag<'w64h64' | 'w256h256' | 'w640h480'>;
  /** `bestfit`: no larger than the size in any direction. */
  readonly mode?: Tag<'strict' | 'bestfit' | 'fitone_bestfit'>;
}

export type ThumbnailV2Error =
  | Nested<'path', LookupError>
  | Tag<
      | 'unsupported_extension'
      | 'unsupported_image'
      | 'encrypted_content'
      | 'conversion_error'
      | 'access_denied'
      | 'not_found'
      | 'other'
    >;
