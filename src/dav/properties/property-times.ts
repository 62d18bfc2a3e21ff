import { parseHttpDate } from '../conditions/preconditions.ts';
import { isTime } from '../request.ts';

/** The form of `creationdate` (RFC 3339); some programs use it for every time. */
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i;

/** Parses a time as RFC 3339 or HTTP writes it. Returns it in ms since 1970; `undefined` for other text. */
export function parseTime(text: string): number | undefined {
  const ms = parseHttpDate(text) ?? parseIsoTime(text);
  return ms !== undefined && isTime(ms) ? ms : undefined;
}

/** Parses a time as RFC 3339 writes it. Returns it in ms since 1970; `undefined` for other text. */
export function parseIsoTime(text: string): number | undefined {
  const ms = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** Returns a time, in ms since 1970, as RFC 3339 writes it, in whole seconds. */
export function isoTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
