import { expect, vi } from 'vitest';

/** How long a test waits for an expectation, in ms: far longer than needed on a busy machine, to end a hang. */
export const WAIT_MS = 300_000;

/** Repeats `expectation` until it does not throw. Resolves with its result. */
export function eventually<T>(expectation: () => T | Promise<T>, intervalMs = 50): Promise<T> {
  return vi.waitFor(expectation, { timeout: WAIT_MS, interval: intervalMs });
}

/**
 * Repeats `read` until the matcher holds: `await expectSoon(() => page.title()).toBe('x')`. Not in a concurrent test, where it
 * throws when another one has ended meanwhile: `eventually` does not.
 */
export function expectSoon<T>(read: () => T | Promise<T>, intervalMs = 50) {
  return expect.poll(read, { timeout: WAIT_MS, interval: intervalMs });
}
