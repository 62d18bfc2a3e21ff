import { languageOf } from './web/code.ts';

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
  const isText = TEXT_ENDINGS.has(ending) || languageOf(name) !== undefined;
  return typeOf(ending) ?? (isText ? TEXT : 'application/octet-stream');
}

/** Types that no page may show, but that a program which fetches the bytes wants to know. */
const OTHER_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  epub: 'application/epub+zip',
  gz: 'application/gzip',
  heic: 'image/heic',
  htm: 'text/html; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  md: 'text/markdown; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  odp: 'application/vnd.oasis.opendocument.presentation',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odt: 'application/vnd.oasis.opendocument.text',
  ppt: 'application/vnd.ms-powerpoint',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  rtf: 'application/rtf',
  tar: 'application/x-tar',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  zip: 'application/zip',
};

/** What the name's ending says, for answers that a browser does not show. */
export function realType(name: string): string {
  const ending = endingOf(name);
  return Object.hasOwn(OTHER_TYPES, ending) ? (OTHER_TYPES[ending] ?? '') : inlineType(name);
}

/** How a browser shows the file by itself; `undefined` if it can not. */
export function mediaKindOf(name: string): 'image' | 'audio' | 'video' | 'pdf' | undefined {
  const type = typeOf(endingOf(name)) ?? '';
  if (type === 'application/pdf') return 'pdf';
  const kind = type.split('/')[0];
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : undefined;
}

function typeOf(ending: string): string | undefined {
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
}

function endingOf(name: string): string {
  const dot = name.lastIndexOf('.');
  return dot < 0 ? '' : name.slice(dot + 1).toLowerCase();
}
