import type { Storage, StoredFile } from '../storage/storage.ts';

export interface FileText {
  /** Lines end with `\n`. */
  readonly text: string;
  /** It is only the beginning of the file. */
  readonly isCut: boolean;
}

/** The first `maxBytes` of a file as text; `undefined` if they are none. */
export async function textOf(
  storage: Storage,
  file: StoredFile,
  maxBytes: number,
): Promise<FileText | undefined> {
  const isCut = file.sizeBytes > maxBytes;
  const chunks: Uint8Array[] = [];
  for await (const chunk of storage.read(file, isCut ? { start: 0, end: maxBytes } : undefined))
    chunks.push(chunk);
  const text = textIn(Buffer.concat(chunks), isCut);
  return text === undefined ? undefined : { text, isCut };
}

/** Control characters are not in text, but for white space and the escapes of terminals. */
function isBinary(text: string): boolean {
  return /(?!\s)\p{Cc}/u.test(text.replaceAll('\u001b', ''));
}

/** Bytes as text, without what a cut has left of the last character; `undefined` if they are none. */
function textIn(bytes: Buffer, isCut: boolean): string | undefined {
  try {
    const decoder = new TextDecoder(encodingOf(bytes), { fatal: true });
    const text = decoder.decode(bytes, { stream: isCut }).replaceAll(/\r\n?/g, '\n');
    return isBinary(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** By the mark that Windows programs put in front; without one it is UTF-8. */
function encodingOf(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString('hex');
  return mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
}
