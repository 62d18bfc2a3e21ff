import { parseHttpDate } from '../conditions/preconditions.ts';

/** Range of times, in ms since 1970: years 0001 to 9999, as other years fit in no HTTP date. */
const TIME_MS_MIN = -62_135_596_800_000;
const TIME_MS_MAX = 253_402_300_799_999;

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

/**
 * Parses a time in seconds since 1970, as `X-OC-Mtime` and `X-OC-CTime` have it (ownCloud, Nextcloud, rclone, gvfs). Returns it
 * in ms since 1970; `undefined` for other text.
 */
export function parseSeconds(text: string): number | undefined {
  const seconds = text.trim();
  if (!/^-?\d{1,12}(\.\d+)?$/.test(seconds)) return undefined;
  const ms = Math.floor(Number(seconds) * 1000);
  return isTime(ms) ? ms : undefined;
}

/** Whether ms since 1970 are a time that an HTTP date can express. */
function isTime(ms: number): boolean {
  return ms >= TIME_MS_MIN && ms <= TIME_MS_MAX;
}

/** Returns a time, in ms since 1970, as RFC 3339 writes it, in whole seconds. */
export function isoTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
