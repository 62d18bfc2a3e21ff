import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../support/dav.ts';
import { usedBytes as collectGarbage } from '../../support/memory-use.ts';

// Measures the memory of its process, which is therefore its own (`ALONE` in vitest.config.ts). What Node reads of a long
// body is garbage that takes up to some 40 MiB before V8 collects it.

const MIBIBYTE = 1024 ** 2;

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/a', 'old');
});
afterEach(() => dav.close());

/** Returns the result of `work`, and the maximum growth of the memory of the process meanwhile. */
async function withPeak<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly peakBytes: number }> {
  await collectGarbage();
  const before = process.memoryUsage.rss();
  let peakBytes = 0;
  const look = () => {
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss() - before);
  };
  const timer = setInterval(look, 1);
  try {
    const result = await work();
    look();
    return { result, peakBytes };
  } finally {
    clearInterval(timer);
  }
}

test.each([
  ['PUT', '/none/a', 'x', 409],
  ['PROPPATCH', '/a', '<x/>', 413],
] as const)(
  'a %s of 200 MiB that is refused raises the memory of the process by less than 100 MiB',
  async (method, target, piece, status) => {
    // The client's own copy is in memory before.
    const body = Buffer.alloc(200 * MIBIBYTE, piece);
    const { result, peakBytes } = await withPeak(async () => {
      const answer = await dav.send(method, target, { body });
      // The answer comes before the end of the body, which is then discarded.
      await dav.untilAlone();
      return answer;
    });
    expect(result.status).toBe(status);
    expect(peakBytes).toBeLessThan(100 * MIBIBYTE);
  },
);
