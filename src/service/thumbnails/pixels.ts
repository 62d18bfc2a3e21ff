/** An image as plain bytes: rows from the top, red, green and blue for each pixel. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly rgb: Buffer;
}

/** The image is damaged, or of an unsupported variant of its format. */
export class UnreadableImage extends Error {
  override readonly name = 'UnreadableImage';
}

/** Maximum number of pixels of an image; a good camera's images have half of it. */
export const IMAGE_PIXELS_MAX = 100_000_000;

/** Maximum memory of an image that is decoded as a whole, in bytes. */
export const HELD_IMAGE_BYTES_MAX = 256 * 1024 * 1024;

const RGB_BYTES = 3;

/** Allocates an image's pixels. Throws `UnreadableImage` for an impossible size. */
export function emptyPixels(width: number, height: number): Pixels {
  const isSize = Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0;
  if (!isSize) throw new UnreadableImage(`no image is ${width} by ${height} pixels`);
  if (width * height > IMAGE_PIXELS_MAX || width * height * RGB_BYTES > HELD_IMAGE_BYTES_MAX)
    throw new UnreadableImage(`${width} by ${height} pixels are too many`);
  return { width, height, rgb: Buffer.alloc(width * height * RGB_BYTES) };
}
