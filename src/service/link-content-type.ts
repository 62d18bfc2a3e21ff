/**
 * The types under which a link's bytes may be shown in a browser, by the name's ending. What is not here
 * goes out as `application/octet-stream`; what could run (HTML, XML, scripts) as plain text.
 */
const TYPES: Readonly<Record<string, string>> = {
  avif: 'image/avif',
  bmp: 'image/bmp',
  gif: 'image/gif',
  ico: 'image/x-icon',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  svg: 'image/svg+xml',
  webp: 'image/webp',
  aac: 'audio/aac',
  flac: 'audio/flac',
  m4a: 'audio/mp4',
  mp3: 'audio/mpeg',
  oga: 'audio/ogg',
  ogg: 'audio/ogg',
  opus: 'audio/ogg',
  wav: 'audio/wav',
  m4v: 'video/mp4',
  mov: 'video/quicktime',
  mp4: 'video/mp4',
  ogv: 'video/ogg',
  webm: 'video/webm',
  pdf: 'application/pdf',
};

const TEXT = 'text/plain; charset=utf-8';

/** What people write and programs read, HTML and scripts among it: shown as it is written. */
const TEXT_ENDINGS = new Set(
  'txt text log md csv tsv json yaml yml toml ini html htm xhtml xml css js mjs ts c h py sh'.split(' '),
);

/** The type that `raw=1` is sent with. */
export function inlineType(name: string): string {
  const ending = endingOf(name);
  return TEXT_ENDINGS.has(ending) ? TEXT : (typeOf(ending) ?? 'application/octet-stream');
}

/** How a page can show the file by itself. */
export function previewOf(name: string): 'image' | 'audio' | 'video' | 'none' {
  const kind = (typeOf(endingOf(name)) ?? '').split('/')[0];
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'none';
}

function typeOf(ending: string): string | undefined {
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
}

function endingOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1).toLowerCase();
}
