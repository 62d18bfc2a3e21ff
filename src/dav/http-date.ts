const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const IMF_FIXDATE = /^\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/i;
const RFC_850 = /^\w{6,9}, (\d{2})-(\w{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/i;
const ASCTIME = /^\w{3} (\w{3}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/i;

/** Parses an HTTP date in any of its three forms (RFC 9110 §5.6.7), to ms since 1970; `undefined` for other text. */
export function parseHttpDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  const asctime = ASCTIME.exec(trimmed);
  const [, day, month, year, hour, minute, second] = asctime
    ? [asctime[0], asctime[2], asctime[1], asctime[6], asctime[3], asctime[4], asctime[5]]
    : (IMF_FIXDATE.exec(trimmed) ?? RFC_850.exec(trimmed) ?? []);
  const index = MONTHS.indexOf(String(month).toLowerCase());
  if (index < 0) return undefined;
  return Date.UTC(fullYear(Number(year)), index, Number(day), Number(hour), Number(minute), Number(second));
}

/** Years of two digits are 1970 to 2069, as in POSIX `strptime`. */
function fullYear(year: number): number {
  if (year >= 100) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

/** Formats ms since 1970 as an HTTP date. */
export function httpDate(ms: number): string {
  return new Date(ms).toUTCString();
}
