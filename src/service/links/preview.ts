import { plainLines } from '../../web/link/lines.ts';
import type { Preview } from '../../web/link/preview.ts';
import type { RenderedText } from '../../web/link/text.ts';
import type { Previews } from '../previews/previews.ts';
import type { Storage, StoredFile } from '../storage/storage.ts';
import { mediaKindOf } from './content-type.ts';

/** How much of a text file a page shows, in bytes. */
const TEXT_MAX_BYTES = 64 * 1024;

interface Sources {
  readonly storage: Storage;
  readonly previews: Previews;
}

/** How a page can show a file: by its name's ending, or by its beginning where that is text. Throws `signal`'s reason. */
export async function filePreview(
  { storage, previews }: Sources,
  file: StoredFile,
  signal: AbortSignal,
): Promise<Preview> {
  const { name, sizeBytes } = file;
  if (sizeBytes === 0) return { kind: 'empty' };
  const media = mediaKindOf(name);
  if (media) return { kind: media };
  const isCut = sizeBytes > TEXT_MAX_BYTES;
  const text = textIn(await beginningOf(storage, file), isCut);
  if (text === undefined) return { kind: 'none' };
  const rendered = await previews.text.of(`${file.rev} ${name}`, async () => ({ name, text }), signal);
  return {
    kind: 'text',
    text: typeof rendered === 'string' ? plainText(text) : rendered,
    cutAtBytes: isCut ? TEXT_MAX_BYTES : undefined,
  };
}

/** Text that could not be rendered, or not soon. */
function plainText(text: string): RenderedText {
  return { form: 'plain', ...plainLines(text) };
}

async function beginningOf(storage: Storage, file: StoredFile): Promise<Buffer> {
  const range = file.sizeBytes > TEXT_MAX_BYTES ? { start: 0, end: TEXT_MAX_BYTES } : undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of storage.read(file, range)) chunks.push(chunk);
  return Buffer.concat(chunks);
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
