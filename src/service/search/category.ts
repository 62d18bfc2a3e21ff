import { extensionOf } from '../../util/file-name.ts';
import type { Stored, StoredDeletion } from '../storage/storage.ts';

/** FileCategory. */
export const CATEGORIES = [
  'image',
  'document',
  'pdf',
  'spreadsheet',
  'presentation',
  'audio',
  'video',
  'folder',
  'paper',
  'others',
] as const;

export type FileCategory = (typeof CATEGORIES)[number];

const EXTENSIONS: readonly (readonly [FileCategory, string])[] = [
  ['image', 'avif bmp cr2 gif heic heif ico jpeg jpg nef png psd raw svg tif tiff webp'],
  ['document', 'doc docm docx dot dotx epub gdoc md odt pages rtf tex txt'],
  ['pdf', 'pdf'],
  ['spreadsheet', 'csv gsheet numbers ods tsv xls xlsb xlsm xlsx'],
  ['presentation', 'gslides key odp pps ppsx ppt pptm pptx'],
  ['audio', 'aac aiff flac m4a mid mp3 oga ogg opus wav wma'],
  ['video', '3gp avi flv m4v mkv mov mp4 mpeg mpg mts ogv webm wmv'],
  ['paper', 'paper papert'],
];

const BY_EXTENSION: ReadonlyMap<string, FileCategory> = new Map(
  EXTENSIONS.flatMap(([category, endings]) => endings.split(' ').map((ending) => [ending, category])),
);

/** Returns the category by the name's extension; the content is not read. */
export function categoryOf(item: Stored | StoredDeletion): FileCategory {
  return item.kind === 'folder' ? 'folder' : categoryOfName(item.name);
}

/** Returns the category of a file with this name. */
export function categoryOfName(name: string): FileCategory {
  return BY_EXTENSION.get(extensionOf(name)) ?? 'others';
}
