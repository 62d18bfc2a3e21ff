import { endingOf } from '../../util/file-name.ts';
import { mediaTypeOf } from '../../util/media-types.ts';
import { languageOf } from './web/code.ts';

/**
 * Media types that a browser may show. Other files are sent as `application/octet-stream`, and types that could run
 * scripts (HTML, XML) as plain text.
 */
const SHOWN_TYPES = new Set([
  'image/avif',
  'image/bmp',
  'image/gif',
  'image/x-icon',
  'image/jpeg',
  'image/png',
  'image/svg+xml',
  'image/webp',
  'audio/aac',
  'audio/flac',
  'audio/mp4',
  'audio/mpeg',
  'audio/ogg',
  'audio/wav',
  'video/mp4',
  'video/quicktime',
  'video/ogg',
  'video/webm',
  'application/pdf',
]);

const TEXT = 'text/plain; charset=utf-8';

/** Extensions of text files, including HTML and scripts, which are shown as source text. */
const TEXT_ENDINGS = new Set(
  'txt text log md csv tsv json yaml yml toml ini html htm xhtml xml css js mjs ts c h py sh'.split(' '),
);

/** Returns the type with which a link's bytes are shown (`raw=1`). */
export function inlineType(name: string): string {
  const isText = TEXT_ENDINGS.has(endingOf(name)) || languageOf(name) !== undefined;
  return shownType(name) ?? (isText ? TEXT : 'application/octet-stream');
}

/** Returns the type of the file itself, for answers that a browser does not show. */
export function realType(name: string): string {
  const type = mediaTypeOf(name);
  if (type === undefined) return inlineType(name);
  return /^text\/[^;]*$/.test(type) ? `${type}; charset=utf-8` : type;
}

/** Returns how a browser shows the file by itself; `undefined` if it cannot. */
export function mediaKindOf(name: string): 'image' | 'audio' | 'video' | 'pdf' | undefined {
  const type = shownType(name) ?? '';
  if (type === 'application/pdf') return 'pdf';
  const kind = type.split('/')[0];
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : undefined;
}

function shownType(name: string): string | undefined {
  const type = mediaTypeOf(name);
  return type !== undefined && SHOWN_TYPES.has(type) ? type : undefined;
}
