import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FailureReason, retryDecision } from '../../../src/api/retry.ts';

const first = { number: 1, elapsedMs: 0, deadlineMs: 25_000 };

describe('what is tried again', () => {
  test.each<FailureReason>(['rate-limited', 'contention', 'server', 'lost'])('%s', (reason) => {
    expect(retryDecision({ reason }, first, 0.5)).toMatchObject({ retry: true });
  });

  test.each<FailureReason>(['refused', 'stale-token'])('not: %s', (reason) => {
    expect(retryDecision({ reason }, first, 0.5)).toEqual({ retry: false });
  });
});

describe('when', () => {
  test.each([
    [1, 0, 0],
    [1, 0.5, 250],
    [2, 0.5, 500],
    [4, 0.5, 2000],
    [4, 0.999, 3996],
    [30, 0.5, 15_000],
  ])('try %i with chance %f: after %i ms', (number, random, delayMs) => {
    expect(retryDecision({ reason: 'server' }, { ...first, number }, random)).toMatchObject({ delayMs });
  });

  test('never before the service said, and hardly after', () => {
    fc.assert(
      fc.property(fc.nat(20_000), fc.double({ min: 0, max: 0.999, noNaN: true }), (retryAfterMs, random) => {
        const decision = retryDecision({ reason: 'rate-limited', retryAfterMs }, first, random);
        expect(decision.retry && decision.delayMs).toBeGreaterThanOrEqual(retryAfterMs);
        expect(decision.retry && decision.delayMs).toBeLessThanOrEqual(retryAfterMs + 250);
      }),
    );
  });

  test('contention without a number is a second', () => {
    expect(retryDecision({ reason: 'contention' }, first, 0)).toMatchObject({ delayMs: 1000 });
  });
});

describe('the account', () => {
  test('pauses when the service limits it and says how long', () => {
    const limited = { reason: 'rate-limited', retryAfterMs: 2000 } as const;
    expect(retryDecision(limited, first, 0)).toMatchObject({ pausesAccount: true });
  });

  test('does not pause for one broken server or a missing number', () => {
    expect(retryDecision({ reason: 'server', retryAfterMs: 2000 }, first, 0)).toMatchObject({
      delayMs: 2000,
      pausesAccount: false,
    });
    expect(retryDecision({ reason: 'rate-limited' }, first, 0)).toMatchObject({ pausesAccount: false });
  });
});

describe('the deadline', () => {
  test('is when the next try would begin', () => {
    const late = { number: 3, elapsedMs: 24_500, deadlineMs: 25_000 };
    expect(retryDecision({ reason: 'server', retryAfterMs: 500 }, late, 0).retry).toBe(true);
    expect(retryDecision({ reason: 'server', retryAfterMs: 501 }, late, 0).retry).toBe(false);
  });

  test('tells how long a limit lasts that is not waited for', () => {
    expect(retryDecision({ reason: 'rate-limited', retryAfterMs: 300_000 }, first, 0)).toEqual({
      retry: false,
      retryAfterMs: 300_000,
    });
  });
});
