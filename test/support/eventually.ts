import { expect, vi } from 'vitest';

/** More than the busiest machine needs for what a test waits for: it ends a hang, and measures nothing. */
export const WAIT_MS = 120_000;

/** Looks again and again until `expectation` throws no more; resolves with what it returns. */
export function eventually<T>(expectation: () => T | Promise<T>, intervalMs = 50): Promise<T> {
  return vi.waitFor(expectation, { timeout: WAIT_MS, interval: intervalMs });
}

/** Reads again and again until the matcher that follows holds: `await expectSoon(() => page.title()).toBe('x')`. */
export function expectSoon<T>(read: () => T | Promise<T>, intervalMs = 50) {
  return expect.poll(read, { timeout: WAIT_MS, interval: intervalMs });
}
