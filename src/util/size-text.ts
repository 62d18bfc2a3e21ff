const UNITS = ['kB', 'MB', 'GB', 'TB'];

/** Returns a size in decimal units, with two or three digits. */
export function sizeText(sizeBytes: number): string {
  if (sizeBytes === 1) return '1 byte';
  if (sizeBytes < 1000) return `${sizeBytes} bytes`;
  let amount = sizeBytes / 1000;
  let unit = 0;
  // A number that would round to 1000 gets the next unit.
  for (; amount >= 999.5 && unit < UNITS.length - 1; unit++) amount /= 1000;
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${UNITS[unit]}`;
}
