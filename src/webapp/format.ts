import { language } from './messages.ts';

const NUMBERS = new Intl.NumberFormat(language, { maximumSignificantDigits: 3 });
const TIMES = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' });
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Returns a size in decimal units, as `1.5 MB`. */
export function sizeText(sizeBytes: number): string {
  let amount = sizeBytes;
  let unit = 0;
  // A number that would round to 1000 gets the next unit.
  for (; amount >= 999.5 && unit < UNITS.length - 1; unit++) amount /= 1000;
  return `${NUMBERS.format(amount)} ${UNITS[unit]}`;
}

/** Returns a time in the browser's time zone. */
export function timeText(ms: number): string {
  return TIMES.format(ms);
}
