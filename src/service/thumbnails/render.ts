import sharp, { type Sharp } from 'sharp';
import { readBmp } from './bmp.ts';
import { IMAGE_MAX_PIXELS, type Pixels, UnreadableImage } from './pixels.ts';
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

/** An image that takes longer was made to. */
const RENDER_MAX_SECONDS = 10;
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
    return await image.sharp
      .resize(width, height, { fit: 'fill' })
      .flatten(format === 'jpeg' ? { background: '#fff' } : false)
      .toFormat(format)
      .timeout({ seconds: RENDER_MAX_SECONDS })
      .toBuffer();
  } catch {
    // libvips says in its own words what is wrong with the bytes; the interface has only this one.
    return 'conversion_error';
  }
}

/** Ready to be worked on, with its size when it is upright; `undefined` for what is no image, or too large a one. */
async function opened(bytes: Buffer): Promise<{ readonly sharp: Sharp; readonly size: Box } | undefined> {
  const plain = await plainPixels(bytes);
  if (plain === 'unreadable') return undefined;
  if (plain) {
    const { width, height, rgb } = plain;
    return { sharp: sharp(rgb, { raw: { width, height, channels: 3 } }), size: plain };
  }
  const image = sharp(bytes, { limitInputPixels: IMAGE_MAX_PIXELS, failOn: 'error' });
  const head = await image.metadata().catch(() => undefined);
  return head && { sharp: image.autoOrient(), size: head.autoOrient };
}

/** Of the two formats that libvips does not read. */
async function plainPixels(bytes: Buffer): Promise<Pixels | 'unreadable' | undefined> {
  const mark = bytes.toString('latin1', 0, 2);
  try {
    if (mark === 'BM') return await readBmp(bytes);
    return mark === 'P6' || mark === 'P3' ? await readPpm(bytes) : undefined;
  } catch (error) {
    if (error instanceof UnreadableImage) return 'unreadable';
    throw error;
  }
}
