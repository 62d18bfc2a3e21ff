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

const UNITS_BYTES: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};

/** Parses a size like `500MB`, `20GiB` or `1000`, in bytes; `undefined` for anything else. */
export function parseSize(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?) ?([a-z]*)$/i.exec(text) ?? [];
  const bytes = Math.round(Number(number) * (UNITS_BYTES[unit.toUpperCase() || 'B'] ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
