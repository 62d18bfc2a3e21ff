import { numberedName } from '../util/file-name.ts';
import { DavFailure, send } from './dav.ts';
import { t } from './messages.ts';
import { addressOf, join, nameOf, parentOf } from './paths.ts';

/** A longer text would stop the browser for seconds, in bytes. */
export const TEXT_BYTES_MAX = 1024 * 1024;

/** How many names are tried for a copy. */
const COPIES_MAX = 100;

type LineEnd = '\n' | '\r\n';

/** A text file as it was read or saved. */
export interface TextFile {
  readonly path: string;
  /** With `\n` at the end of each line, as a text field has it. */
  readonly text: string;
  /** What ends the lines in the file. */
  readonly lineEnd: LineEnd;
  /** The entity tag of this content. */
  readonly etag: string | undefined;
}

/** Reads a text file. Throws `DavFailure`, and `Error` with a sentence for a person if it is not UTF-8. */
export async function readTextFile(path: string, signal: AbortSignal): Promise<TextFile> {
  const answer = await send('GET', addressOf(path, 'file'), { signal });
  const content = decoded(await answer.arrayBuffer());
  return {
    path,
    text: content.replaceAll(/\r\n?/g, '\n'),
    lineEnd: lineEndOf(content),
    etag: answer.headers.get('etag') ?? undefined,
  };
}

/** Text in another encoding would be damaged when it is saved. A byte order mark stays a part of the text. */
function decoded(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error(t('notUtf8'));
  }
}

/** Returns what ends most lines. */
function lineEndOf(content: string): LineEnd {
  const windows = content.split('\r\n').length - 1;
  const all = content.split('\n').length - 1;
  return windows * 2 > all ? '\r\n' : '\n';
}

/**
 * Saves `text` in place of `file`. Throws `DavFailure` 412 if somebody else has changed or removed the file meanwhile,
 * unless `replaces`.
 */
export async function saveTextFile(file: TextFile, text: string, replaces: boolean): Promise<TextFile> {
  const isKnown = !replaces && file.etag !== undefined;
  return write({ ...file, text }, isKnown ? { 'If-Match': file.etag } : {});
}

/** Saves `text` beside `file`, under the first free name with a number. Throws `DavFailure`. */
export async function saveTextCopy(file: TextFile, text: string): Promise<TextFile> {
  for (let number = 2; ; number++) {
    const path = join(parentOf(file.path), numberedName(nameOf(file.path), number));
    try {
      return await write({ ...file, path, text }, { 'If-None-Match': '*' });
    } catch (failure) {
      const isTaken = failure instanceof DavFailure && failure.status === 412;
      if (!isTaken || number > COPIES_MAX) throw failure;
    }
  }
}

/** Creates an empty text file. Throws `DavFailure` 412 if the name is taken. */
export async function createTextFile(path: string): Promise<void> {
  await write({ path, text: '', lineEnd: '\n', etag: undefined }, { 'If-None-Match': '*' });
}

async function write(file: TextFile, conditions: Readonly<Record<string, string>>): Promise<TextFile> {
  const headers = { 'Content-Type': 'text/plain; charset=utf-8', ...conditions };
  const body = file.text.replaceAll('\n', file.lineEnd);
  const answer = await send('PUT', addressOf(file.path, 'file'), { headers, body });
  return { ...file, etag: answer.headers.get('etag') ?? undefined };
}
