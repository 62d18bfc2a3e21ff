import { joinPieces } from '../../util/whole-body.ts';
import type { Storage } from '../storage/storage.ts';
import type { ReadableFile } from './file-content.ts';

export interface FileText {
  /** Lines end with `\n`. */
  readonly text: string;
  /** Whether the text is only the beginning of the file. */
  readonly isCut: boolean;
}

/** Returns the first `bytesMax` bytes of a file as text; `undefined` for a binary file. */
export async function textOf(
  storage: Storage,
  { namespace, file }: ReadableFile,
  bytesMax: number,
): Promise<FileText | undefined> {
  const isCut = file.sizeBytes > bytesMax;
  const range = isCut ? { start: 0, end: bytesMax } : undefined;
  const text = textIn(await joinPieces(storage.read(namespace, file, range)), isCut);
  return text === undefined ? undefined : { text, isCut };
}

/** Whether `text` contains control characters other than white space and terminal escapes. */
function isBinary(text: string): boolean {
  return /(?!\s)\p{Cc}/u.test(text.replaceAll('\u001b', ''));
}

/** Decodes bytes, without a character that the cut has split; `undefined` for binary ones. */
function textIn(bytes: Buffer, isCut: boolean): string | undefined {
  try {
    const decoder = new TextDecoder(encodingOf(bytes), { fatal: true });
    const text = decoder.decode(bytes, { stream: isCut }).replaceAll(/\r\n?/g, '\n');
    return isBinary(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Returns the encoding by the byte order mark that Windows programs write; UTF-8 without one. */
function encodingOf(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString('hex');
  return mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
}
