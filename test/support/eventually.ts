import { vi } from 'vitest';

/** More than the busiest machine needs for what a test waits for: it ends a hang, and measures nothing. */
const WAIT_MS = 120_000;

/** Looks again and again until `expectation` throws no more; resolves with what it returns. */
export function eventually<T>(expectation: () => T | Promise<T>, intervalMs = 50): Promise<T> {
  return vi.waitFor(expectation, { timeout: WAIT_MS, interval: intervalMs });
}
