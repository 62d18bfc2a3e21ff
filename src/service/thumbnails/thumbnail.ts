import type { Storage, StoredFile } from '../storage/storage.ts';
import { type NoThumbnail, renderThumbnail, type Wanted } from './render.ts';

const ENDINGS = new Set('jpg jpeg png tiff tif gif webp ppm bmp'.split(' '));

/** The real service's 20 MB. */
const SOURCE_MAX_BYTES = 20 * 1024 * 1024;

/** Why there is no thumbnail, in the interface's words. */
type ThumbnailFailure = NoThumbnail | 'unsupported_extension';

/** The thumbnail of a file's revision, in the format that was asked for. */
export async function thumbnailOf(
  storage: Storage,
  file: StoredFile,
  wanted: Wanted,
): Promise<Buffer | ThumbnailFailure> {
  if (!hasImageEnding(file.name)) return 'unsupported_extension';
  if (file.sizeBytes === 0 || file.sizeBytes > SOURCE_MAX_BYTES) return 'unsupported_image';
  const chunks: Uint8Array[] = [];
  for await (const chunk of storage.read(file, undefined)) chunks.push(chunk);
  return await renderThumbnail(Buffer.concat(chunks), wanted);
}

function hasImageEnding(name: string): boolean {
  return ENDINGS.has(/\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? '');
}
