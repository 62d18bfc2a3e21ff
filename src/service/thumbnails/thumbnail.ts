import { endingOf } from '../../util/file-name.ts';
import { joinPieces } from '../../util/whole-body.ts';
import type { ReadableFile } from '../content/file-content.ts';
import type { Previews } from '../previews/previews.ts';
import type { Waiting } from '../previews/renderer.ts';
import type { Storage, StoredFile } from '../storage/storage.ts';
import type { NoThumbnail, Wanted } from './render.ts';

const ENDINGS = new Set('jpg jpeg png tiff tif gif webp ppm bmp'.split(' '));

/** Maximum size of a source image, in bytes: 20 MB, as at the real service. */
const SOURCE_BYTES_MAX = 20 * 1024 * 1024;

/** The reason for a missing thumbnail, with the API's names; `busy`: too many are being made. */
type ThumbnailFailure = NoThumbnail | 'unsupported_extension' | 'busy';

/** Whether a file may be an image, by its name and size; its bytes may still be none. */
export function mayHaveThumbnail({ name, sizeBytes }: StoredFile): boolean {
  return hasImageEnding(name) && hasImageSize(sizeBytes);
}

/** Returns the thumbnail of a file's revision in the requested format. Throws the signal's reason while it waits. */
export async function thumbnailOf(
  { storage, previews }: { readonly storage: Storage; readonly previews: Previews },
  { namespace, file }: ReadableFile,
  wanted: Wanted,
  waiting: Waiting,
): Promise<Uint8Array | ThumbnailFailure> {
  if (!hasImageEnding(file.name)) return 'unsupported_extension';
  if (!hasImageSize(file.sizeBytes)) return 'unsupported_image';
  const { format, mode, box } = wanted;
  // Namespaces may have equal revisions.
  const key = [namespace, file.rev, format, mode, box.width, box.height].join(' ');
  const made = await previews.thumbnail.of(
    key,
    async () => ({ bytes: await joinPieces(storage.read(namespace, file, undefined)), wanted }),
    waiting,
  );
  return made === 'failed' ? 'conversion_error' : made;
}

function hasImageEnding(name: string): boolean {
  return ENDINGS.has(endingOf(name));
}

function hasImageSize(sizeBytes: number): boolean {
  return sizeBytes > 0 && sizeBytes <= SOURCE_BYTES_MAX;
}
