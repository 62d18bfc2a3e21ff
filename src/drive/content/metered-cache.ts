import type { Meter } from '../../util/meter.ts';
import type { BlockCache } from './block-cache.ts';

/** `cache`, with what it is good for told to `meter`. */
export function meteredCache(cache: BlockCache, meter: Meter): BlockCache {
  return {
    has: (block, at) => cache.has(block, at),
    partAfter: (block, at) => cache.partAfter(block, at),
    async read(block, start, end, into) {
      const bytes = await cache.read(block, start, end, into);
      if (bytes) meter.blockRead(bytes.length);
      return bytes;
    },
    hasRoomFor: (sizeBytes) => cache.hasRoomFor(sizeBytes),
    keep(block, bytes, options) {
      meter.blockKept(bytes.length);
      return cache.keep(block, bytes, options);
    },
    forget: (block) => cache.forget(block),
    close: () => cache.close(),
  };
}
