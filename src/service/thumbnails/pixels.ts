/** An image as plain bytes: rows from the top, in each pixel red, green and blue. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly rgb: Buffer;
}

/** The image is damaged, or of a kind of its format that is not read here. */
export class UnreadableImage extends Error {
  override readonly name = 'UnreadableImage';
}

/** More is refused, whatever the memory they take; a good camera's images have half of it. */
export const IMAGE_MAX_PIXELS = 100_000_000;

/** What an image may take that has to be in memory as a whole, in bytes. */
export const HELD_IMAGE_MAX_BYTES = 256 * 1024 * 1024;

const RGB_BYTES = 3;

/** Room for an image's pixels. Throws `UnreadableImage` for a size that no image has. */
export function emptyPixels(width: number, height: number): Pixels {
  const isSize = Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0;
  if (!isSize) throw new UnreadableImage(`no image is ${width} by ${height} pixels`);
  if (width * height > IMAGE_MAX_PIXELS || width * height * RGB_BYTES > HELD_IMAGE_MAX_BYTES)
    throw new UnreadableImage(`${width} by ${height} pixels are too many`);
  return { width, height, rgb: Buffer.alloc(width * height * RGB_BYTES) };
}
