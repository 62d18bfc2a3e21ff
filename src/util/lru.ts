import { LRUCache } from 'lru-cache';

/**
 * Creates a map of at most `max` values, which forgets the least recently used first. It takes memory as it fills;
 * `LRUCache` with its option `max` takes all of it at once, which costs 10 ms for 100,000 values. `forgotten` is called with
 * each value that leaves the map.
 */
export function createLru<V extends NonNullable<unknown>>(
  max: number,
  forgotten?: (value: V) => void,
): LRUCache<string, V> {
  return new LRUCache({ maxSize: max, sizeCalculation: () => 1, ...(forgotten && { dispose: forgotten }) });
}
