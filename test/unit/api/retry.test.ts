import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FailureReason } from '../../../src/api/failure.ts';
import { retryDecision } from '../../../src/api/retry.ts';

const first = { number: 1, elapsedMs: 0, deadlineMs: 25_000 };

describe('retry decision', () => {
  test.each<FailureReason>(['rate-limited', 'contention', 'server', 'lost'])(
    'a call that failed with %s is retried',
    (reason) => {
      expect(retryDecision({ reason }, first, 0.5)).toMatchObject({ retry: true });
    },
  );

  test.each<FailureReason>(['refused', 'stale-token'])(
    'a call that failed with %s is not retried',
    (reason) => {
      expect(retryDecision({ reason }, first, 0.5)).toEqual({ retry: false });
    },
  );
});

describe('retry delay', () => {
  test.each([
    [1, 0, 0],
    [1, 0.5, 250],
    [2, 0.5, 500],
    [4, 0.5, 2000],
    [4, 0.999, 3996],
    [30, 0.5, 15_000],
  ])('try %i with the random number %f is delayed by %i ms', (number, random, delayMs) => {
    expect(retryDecision({ reason: 'server' }, { ...first, number }, random)).toMatchObject({ delayMs });
  });

  test("a retry is never before the service's Retry-After, and at most 250 ms after it", () => {
    fc.assert(
      fc.property(fc.nat(20_000), fc.double({ min: 0, max: 0.999, noNaN: true }), (retryAfterMs, random) => {
        const decision = retryDecision({ reason: 'rate-limited', retryAfterMs }, first, random);
        expect(decision.retry && decision.delayMs).toBeGreaterThanOrEqual(retryAfterMs);
        expect(decision.retry && decision.delayMs).toBeLessThanOrEqual(retryAfterMs + 250);
      }),
    );
  });

  test('a retry after contention without Retry-After is delayed by a second', () => {
    expect(retryDecision({ reason: 'contention' }, first, 0)).toMatchObject({ delayMs: 1000 });
  });
});

describe('pause of the account', () => {
  test('a rate limit with Retry-After pauses the account', () => {
    const limited = { reason: 'rate-limited', retryAfterMs: 2000 } as const;
    expect(retryDecision(limited, first, 0)).toMatchObject({ pausesAccount: true });
  });

  test('a failing server, or a rate limit without Retry-After, does not pause the account', () => {
    expect(retryDecision({ reason: 'server', retryAfterMs: 2000 }, first, 0)).toMatchObject({
      delayMs: 2000,
      pausesAccount: false,
    });
    expect(retryDecision({ reason: 'rate-limited' }, first, 0)).toMatchObject({ pausesAccount: false });
  });
});

describe('retry deadline', () => {
  test('a call is retried only if the next try starts before the deadline', () => {
    const late = { number: 3, elapsedMs: 24_500, deadlineMs: 25_000 };
    expect(retryDecision({ reason: 'server', retryAfterMs: 500 }, late, 0).retry).toBe(true);
    expect(retryDecision({ reason: 'server', retryAfterMs: 501 }, late, 0).retry).toBe(false);
  });

  test('a rate limit beyond the deadline is not retried and reports its length', () => {
    expect(retryDecision({ reason: 'rate-limited', retryAfterMs: 300_000 }, first, 0)).toEqual({
      retry: false,
      retryAfterMs: 300_000,
    });
  });
});
