import sharp, { type Metadata, type Sharp } from 'sharp';
import { readBmp } from './bmp.ts';
import { HELD_IMAGE_MAX_BYTES, IMAGE_MAX_PIXELS, type Pixels, UnreadableImage } from './pixels.ts';
import { readPpm } from './ppm.ts';
import { type Box, fitted, type ThumbnailMode } from './size.ts';

export type ThumbnailFormat = 'jpeg' | 'png' | 'webp';

export interface Wanted {
  readonly format: ThumbnailFormat;
  readonly box: Box;
  readonly mode: ThumbnailMode;
}

/** Why there is no thumbnail, in the interface's words. */
export type NoThumbnail = 'unsupported_image' | 'conversion_error';

/** Encoded size of a thumbnail, in bytes. Only an image at its original size comes near it. */
const THUMBNAIL_MAX_BYTES = 32 * 1024 * 1024;
// Only what is asked for by name is read: libvips would take SVG, PDF and more for an image, whatever the ending.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: ['Jpeg', 'Png', 'Webp', 'Tiff', 'Nsgif'].map((format) => `VipsForeignLoad${format}Buffer`),
});
sharp.cache(false);
sharp.concurrency(1);

/** The image in `bytes` scaled down, upright, without its metadata; of a moving one the first picture. */
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
    return made.length > THUMBNAIL_MAX_BYTES ? 'conversion_error' : made;
  } catch {
    // libvips says in its own words what is wrong with the bytes; the interface has only this one.
    return 'conversion_error';
  }
}

/** Ready to be worked on, with its size when it is upright; `undefined` for what is no image, or too large a one. */
async function opened(bytes: Buffer): Promise<{ readonly sharp: Sharp; readonly size: Box } | undefined> {
  const plain = plainPixels(bytes);
  if (plain === 'unreadable') return undefined;
  if (plain) {
    const { width, height, rgb } = plain;
    return { sharp: sharp(rgb, { raw: { width, height, channels: 3 } }), size: plain };
  }
  const image = sharp(bytes, { limitInputPixels: IMAGE_MAX_PIXELS, failOn: 'error' });
  const head = await image.metadata().catch(() => undefined);
  if (!head || heldBytes(head) > HELD_IMAGE_MAX_BYTES) return undefined;
  return { sharp: image.autoOrient(), size: head.autoOrient };
}

/** Formats that libvips cannot decode row by row. */
const HELD_FORMATS = new Set(['gif', 'tiff', 'webp']);
const SAMPLE_BYTES: Readonly<Record<string, number>> = { uchar: 1, char: 1, ushort: 2, short: 2 };
/** Of formats with floating point numbers or more: none is larger. */
const SAMPLE_MAX_BYTES = 16;

/** The memory that decoding takes at once, in bytes; 0 where rows are decoded one after another. */
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
  // A progressive JPEG is held as coefficients of 16 bits.
  const sampleBytes = isProgressive && format === 'jpeg' ? 2 : (SAMPLE_BYTES[depth] ?? SAMPLE_MAX_BYTES);
  return width * height * channels * sampleBytes;
}

/** Of the two formats that libvips does not read. */
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
