import { endingOf } from '../util/file-name.ts';

/** Kinds of files, by which they are drawn and shown. */
export type FileKind = 'image' | 'video' | 'audio' | 'pdf' | 'text' | 'archive' | 'other';

const EXTENSIONS: Readonly<Record<Exclude<FileKind, 'other'>, string>> = {
  image: 'png jpg jpeg gif webp avif svg bmp ico',
  video: 'mp4 m4v mov webm ogv',
  audio: 'mp3 m4a aac flac ogg oga opus wav',
  pdf: 'pdf',
  text:
    'txt text log md markdown csv tsv json xml html htm css scss js mjs cjs ts tsx jsx py rb rs go c h cpp hpp java kt ' +
    'swift sh sql yaml yml toml ini conf php lua r diff patch tex srt',
  archive: 'zip gz tar tgz bz2 xz 7z rar zst',
};

const KIND_OF_EXTENSION = new Map(
  Object.entries(EXTENSIONS).flatMap(([kind, extensions]) =>
    // A cast, because `Object.entries` loses the type of the keys.
    extensions.split(' ').map((extension) => [extension, kind as FileKind] as const),
  ),
);

/** Returns the kind of a file by the ending of its name. */
export function kindOf(name: string): FileKind {
  return KIND_OF_EXTENSION.get(endingOf(name)) ?? 'other';
}
