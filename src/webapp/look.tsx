import { useState } from 'preact/hooks';
import type { Item } from './dav.ts';
import { thumbnailOf } from './gateway.ts';
import { ItemIcon } from './icons.tsx';
import { kindOf } from './kinds.ts';
import { addressOf } from './paths.ts';

/** Images up to this size are loaded whole for the grid when they have no thumbnail, in bytes. */
const WHOLE_BYTES_MAX = 2 * 1024 * 1024;

/** Images up to this size are their own thumbnails: asking for another costs as much, in bytes. */
const OWN_THUMBNAIL_BYTES_MAX = 128 * 1024;

/** Of these, and up to this size in bytes, the storage service makes thumbnails (`get_thumbnail_v2`). */
const THUMBNAIL_NAMES = /\.(jpe?g|png|tiff?|gif|webp|ppm|bmp)$/i;
const THUMBNAIL_SOURCE_BYTES_MAX = 20 * 1024 * 1024;

/** The small image of an item, if there is one; until it has come, and otherwise, the drawing of the item's kind. */
export function Look({ item, isLarge }: { readonly item: Item; readonly isLarge: boolean }) {
  const [failures, setFailures] = useState(0);
  const [loaded, setLoaded] = useState<string>();
  const source = sourcesOf(item, isLarge ? WHOLE_BYTES_MAX : OWN_THUMBNAIL_BYTES_MAX)[failures];
  return (
    <span class={source !== undefined && loaded === source ? 'look covered' : 'look'}>
      <ItemIcon item={item} />
      {source !== undefined && (
        <img
          key={source}
          src={source}
          alt=""
          loading="lazy"
          draggable={false}
          onLoad={() => setLoaded(source)}
          onError={() => setFailures(failures + 1)}
        />
      )}
    </span>
  );
}

/** Returns where an item's image comes from, best first; whole only up to `wholeBytesMax`. */
function sourcesOf(item: Item, wholeBytesMax: number): readonly string[] {
  const { name, path, sizeBytes = 0, etag } = item;
  const hasThumbnail =
    THUMBNAIL_NAMES.test(name) && sizeBytes <= THUMBNAIL_SOURCE_BYTES_MAX && etag !== undefined;
  const isImage = kindOf(name) === 'image';
  return [
    ...(hasThumbnail && sizeBytes > OWN_THUMBNAIL_BYTES_MAX ? [thumbnailOf(item)] : []),
    ...(isImage && sizeBytes <= wholeBytesMax ? [addressOf(path, 'file')] : []),
  ];
}
