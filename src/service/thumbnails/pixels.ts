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

/** More would be some gigabyte in memory; a good camera's images have half of it. */
export const IMAGE_MAX_PIXELS = 100_000_000;

/** Room for an image's pixels. Throws `UnreadableImage` for a size that no image has. */
export function emptyPixels(width: number, height: number): Pixels {
  const isSize = Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0;
  if (!isSize || width * height > IMAGE_MAX_PIXELS)
    throw new UnreadableImage(`no image is ${width} by ${height} pixels`);
  return { width, height, rgb: Buffer.alloc(width * height * 3) };
}
