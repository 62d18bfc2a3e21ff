import sharp, { type Metadata, type Sharp } from 'sharp';
import { readBmp } from './bmp.ts';
import { HELD_IMAGE_BYTES_MAX, IMAGE_PIXELS_MAX, type Pixels, UnreadableImage } from './pixels.ts';
import { readPpm } from './ppm.ts';
import { type Box, fitted, type ThumbnailMode } from './size.ts';

export type ThumbnailFormat = 'jpeg' | 'png' | 'webp';

export interface Wanted {
  readonly format: ThumbnailFormat;
  readonly box: Box;
  readonly mode: ThumbnailMode;
}

/** The reason for a missing thumbnail, with the API's names. */
export type NoThumbnail = 'unsupported_image' | 'conversion_error';

/** Maximum encoded size of a thumbnail, in bytes. Only an image at its original size comes near it. */
const THUMBNAIL_BYTES_MAX = 32 * 1024 * 1024;
// Only loaders that are enabled by name: libvips would also read SVG, PDF and more, whatever the file's extension.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: ['Jpeg', 'Png', 'Webp', 'Tiff', 'Nsgif'].map((format) => `VipsForeignLoad${format}Buffer`),
});
sharp.cache(false);
sharp.concurrency(1);

/** Renders the image in `bytes` scaled down, upright, without its metadata; of an animation the first frame. */
export async function renderThumbnail(
  bytes: Buffer,
  { format, box, mode }: Wanted,
): Promise<Buffer | NoThumbnail> {
  const image = await opened(bytes);
  if (!image) return 'unsupported_image';
  try {
    const { width, height } = fitted(image.size, box, mode);
    const made = await image.sharp
      .resize(width, height, { fit: 'fill' })
      .flatten(format === 'jpeg' ? { background: '#fff' } : false)
      .toFormat(format)
      .toBuffer();
    return made.length > THUMBNAIL_BYTES_MAX ? 'conversion_error' : made;
  } catch {
    // libvips has many messages for damaged bytes, the API has one tag.
    return 'conversion_error';
  }
}

/**
 * Opens an image, with its size when it is upright; `undefined` for bytes that are not an image, or too large a one.
 */
async function opened(bytes: Buffer): Promise<{ readonly sharp: Sharp; readonly size: Box } | undefined> {
  const plain = plainPixels(bytes);
  if (plain === 'unreadable') return undefined;
  if (plain) {
    const { width, height, rgb } = plain;
    return { sharp: sharp(rgb, { raw: { width, height, channels: 3 } }), size: plain };
  }
  const image = sharp(bytes, { limitInputPixels: IMAGE_PIXELS_MAX, failOn: 'error' });
  const head = await image.metadata().catch(() => undefined);
  if (!head || heldBytes(head) > HELD_IMAGE_BYTES_MAX) return undefined;
  return { sharp: image.autoOrient(), size: head.autoOrient };
}

/** Formats that libvips cannot decode row by row. */
const HELD_FORMATS = new Set(['gif', 'tiff', 'webp']);
const SAMPLE_BYTES: Readonly<Record<string, number>> = { uchar: 1, char: 1, ushort: 2, short: 2 };
/** Maximum size of a sample, in bytes, for formats with floating point numbers. */
const SAMPLE_BYTES_MAX = 16;

/** Returns the memory that decoding takes at once, in bytes; 0 for formats that are decoded row by row. */
function heldBytes({
  format,
  width,
  height,
  channels,
  depth,
  isProgressive,
  orientation = 1,
}: Metadata): number {
  if (!HELD_FORMATS.has(format) && !isProgressive && orientation === 1) return 0;
  // A progressive JPEG is decoded to coefficients of 16 bits.
  const sampleBytes = isProgressive && format === 'jpeg' ? 2 : (SAMPLE_BYTES[depth] ?? SAMPLE_BYTES_MAX);
  return width * height * channels * sampleBytes;
}

/** Decodes the two formats that libvips does not read. */
function plainPixels(bytes: Buffer): Pixels | 'unreadable' | undefined {
  const mark = bytes.toString('latin1', 0, 2);
  try {
    if (mark === 'BM') return readBmp(bytes);
    return mark === 'P6' || mark === 'P3' ? readPpm(bytes) : undefined;
  } catch (error) {
    if (error instanceof UnreadableImage) return 'unreadable';
    throw error;
  }
}
