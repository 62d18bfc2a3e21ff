import PQueue from 'p-queue';

/**
 * Returns a queue for many calls of a store. One that flushes each of a thousand calls to a slow disk would answer the last of
 * them later than davgate waits for.
 */
export const aHundredAtOnce = () => new PQueue({ concurrency: 100 });
