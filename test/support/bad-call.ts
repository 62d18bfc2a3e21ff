import { expect } from 'vitest';
import type { Answered } from './service-client.ts';

/** Expects the answer to a malformed call: 400 with a text and a request id. */
export function expectBadCall(answered: Answered, text: string): void {
  expect([answered.status, answered.text]).toEqual([400, text]);
  expect(answered.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(answered.headers.get('x-dropbox-request-id')).toMatch(/^[0-9a-f]{32}$/);
}
