import { setImmediate as otherCalls } from 'node:timers/promises';

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

/** Pixels that are worked out in one go: some tens of milliseconds on a slow machine. */
const PART_PIXELS = 250_000;

/** Works on all of `count` pixels, from one number up to another at a time, and lets other calls through in between. */
export async function inParts(count: number, work: (from: number, to: number) => void): Promise<void> {
  for (let from = 0; from < count; from += PART_PIXELS) {
    work(from, Math.min(from + PART_PIXELS, count));
    await otherCalls();
  }
}
