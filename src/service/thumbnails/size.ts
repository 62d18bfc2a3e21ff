/** Width and height in pixels. */
export interface Box {
  readonly width: number;
  readonly height: number;
}

/**
 * ThumbnailMode. `strict`: the image fits into the box; `bestfit`: into the box or its transpose; `fitone_bestfit`: it
 * covers the box or its transpose; `original`: it keeps its size.
 */
export type ThumbnailMode = 'strict' | 'bestfit' | 'fitone_bestfit' | 'original';

/** Returns the size of the thumbnail of an image of `size`: never larger than the image. */
export function fitted(size: Box, box: Box, mode: ThumbnailMode): Box {
  const scale = Math.min(1, scaleOf(size, box, mode));
  return { width: scaled(size.width, scale), height: scaled(size.height, scale) };
}

function scaleOf(size: Box, box: Box, mode: ThumbnailMode): number {
  const turned = { width: box.height, height: box.width };
  switch (mode) {
    case 'original':
      return 1;
    case 'strict':
      return inside(size, box);
    case 'bestfit':
      return Math.max(inside(size, box), inside(size, turned));
    case 'fitone_bestfit':
      return Math.min(covering(size, box), covering(size, turned));
  }
}

function inside(size: Box, box: Box): number {
  return Math.min(box.width / size.width, box.height / size.height);
}

function covering(size: Box, box: Box): number {
  return Math.max(box.width / size.width, box.height / size.height);
}

function scaled(length: number, scale: number): number {
  return Math.max(1, Math.round(length * scale));
}
