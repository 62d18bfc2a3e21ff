import { expect, test } from 'vitest';
import { type Effort, effortOf } from '../support/limited-account.ts';
import { startRedis } from '../support/redis.ts';

/** The service limits calls, and refuses a second commit in the namespace. */
const LIMITS = {
  'latency-write-ms': 50,
  'latency-metadata-ms': 30,
  'contention-hold-ms': 20,
  'rate-per-second': 12,
  'rate-burst': 20,
};

const WRITES = { clients: 12, filesEach: 10 };

test('two and four gateways of a limited account store 120 small files with less than 2.5 times the calls of one gateway and at most 8 more refusals', async () => {
  const redis = await startRedis(['--appendfsync', 'no']);
  try {
    const one = await effortOf(redis, 1, LIMITS, WRITES);
    expect(one.failed).toEqual([]);
    expectAbout(one, await effortOf(redis, 2, LIMITS, WRITES));
    expectAbout(one, await effortOf(redis, 4, LIMITS, WRITES));
  } finally {
    await redis.close();
  }
});

/**
 * On an idle machine it is a few calls more, for the start at each gateway. A busy one separates what gateways would send
 * together; gateways that share nothing need six times the calls.
 */
function expectAbout(one: Effort, several: Effort): void {
  expect(several.failed).toEqual([]);
  expect(several.calls.length).toBeLessThan(2.5 * one.calls.length);
  expect(several.refusals).toBeLessThanOrEqual(one.refusals + 8);
}
