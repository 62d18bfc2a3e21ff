import { createHash } from 'node:crypto';

/** Returns the source of a Content-Security-Policy that allows exactly this style sheet or script in a page. */
export function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
