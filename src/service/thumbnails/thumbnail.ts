import PQueue from 'p-queue';
import type { Storage, StoredFile } from '../storage/storage.ts';
import type { NoThumbnail, Wanted } from './render.ts';

const ENDINGS = new Set('jpg jpeg png tiff tif gif webp ppm bmp'.split(' '));

/** The real service's 20 MB. */
const SOURCE_MAX_BYTES = 20 * 1024 * 1024;

/** At once: each holds an image in memory, and the disk's calls wait behind them for the same threads. */
const RENDERS_MAX = 2;

const renders = new PQueue({ concurrency: RENDERS_MAX });

/** Why there is no thumbnail, in the interface's words. */
type ThumbnailFailure = NoThumbnail | 'unsupported_extension';

/** Whether it is worth asking: the bytes may still be no image. */
export function mayHaveThumbnail({ name, sizeBytes }: StoredFile): boolean {
  return hasImageEnding(name) && hasImageSize(sizeBytes);
}

/** The thumbnail of a file's revision, in the format that was asked for. Throws `signal`'s reason when its turn comes too late. */
export async function thumbnailOf(
  storage: Storage,
  file: StoredFile,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<Buffer | ThumbnailFailure> {
  if (!hasImageEnding(file.name)) return 'unsupported_extension';
  if (!hasImageSize(file.sizeBytes)) return 'unsupported_image';
  return await renders.add(async () => {
    // Who waited in line and has gone must not hold up the others with an image that nobody will see.
    signal.throwIfAborted();
    const chunks: Uint8Array[] = [];
    for await (const chunk of storage.read(file, undefined)) chunks.push(chunk);
    // Only when it is needed: libvips takes 25 MB of memory.
    const { renderThumbnail } = await import('./render.ts');
    return renderThumbnail(Buffer.concat(chunks), wanted);
  });
}

function hasImageEnding(name: string): boolean {
  return ENDINGS.has(/\.([^.]*)$/.exec(name)?.[1]?.toLowerCase() ?? '');
}

function hasImageSize(sizeBytes: number): boolean {
  return sizeBytes > 0 && sizeBytes <= SOURCE_MAX_BYTES;
}
