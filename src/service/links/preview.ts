import { textOf } from '../content/file-text.ts';
import type { Previews } from '../previews/previews.ts';
import type { Storage, StoredFile } from '../storage/storage.ts';
import { mediaKindOf } from './content-type.ts';
import { plainLines } from './web/lines.ts';
import type { Preview } from './web/preview.ts';
import type { RenderedText } from './web/text.ts';

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
  const beginning = await textOf(storage, file, TEXT_MAX_BYTES);
  if (!beginning) return { kind: 'none' };
  const { text, isCut } = beginning;
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
