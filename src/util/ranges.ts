/** Bytes from `start` up to but excluding `end`. Never empty. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Maximum number of ranges in one request. No reader needs more; an attacker would, to cause work. */
const RANGES_MAX = 64;
/** Maximum gap between two ranges that are sent as one, in bytes: the header of another part would be longer. */
const GAP_BYTES_MAX = 128;

/**
 * Returns the ranges that a `Range` header requests of `sizeBytes` bytes (RFC 9110 §14.2), in the requested order. Joins
 * ranges that overlap or nearly touch. Returns `undefined` for a header to ignore, because it is malformed, has another
 * unit or too many ranges, and `'unsatisfiable'` if no requested byte exists.
 */
export function parseRange(header: string, sizeBytes: number): ByteRange[] | 'unsatisfiable' | undefined {
  const [, list] = /^\s*bytes\s*=(.*)$/i.exec(header) ?? [];
  if (list === undefined) return undefined;
  const specs = list.split(',').map((spec) => spec.trim());
  const wanted = specs.filter((spec) => spec !== '');
  if (wanted.length === 0 || wanted.length > RANGES_MAX) return undefined;
  const ranges: ByteRange[] = [];
  for (const spec of wanted) {
    const range = parseSpec(spec, sizeBytes);
    if (range === 'malformed') return undefined;
    if (range) ranges.push(range);
  }
  // A suffix of an empty file is the whole file (§14.1.2), which no range can express.
  if (ranges.length === 0) return sizeBytes === 0 && wanted.every(isSuffix) ? undefined : 'unsatisfiable';
  return coalesced(ranges);
}

function isSuffix(spec: string): boolean {
  return /^-0*[1-9]/.test(spec);
}

/** Returns `undefined` for a range beyond the end. */
function parseSpec(spec: string, sizeBytes: number): ByteRange | 'malformed' | undefined {
  const [, first, last] = /^(\d*)\s*-\s*(\d*)$/.exec(spec) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return 'malformed';
  if (first === '') {
    const start = Math.max(0, sizeBytes - Number(last));
    return start < sizeBytes ? { start, end: sizeBytes } : undefined;
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'malformed';
  if (start >= sizeBytes) return undefined;
  return { start, end: last === '' ? sizeBytes : Math.min(sizeBytes, Number(last) + 1) };
}

/** Joins ranges. Keeps the requested order if none meet, and returns them in the order of the bytes otherwise. */
function coalesced(ranges: ByteRange[]): ByteRange[] {
  const merged: ByteRange[] = [];
  for (const range of [...ranges].sort((one, other) => one.start - other.start)) {
    const before = merged.at(-1);
    if (before && range.start - before.end <= GAP_BYTES_MAX)
      merged[merged.length - 1] = { start: before.start, end: Math.max(before.end, range.end) };
    else merged.push(range);
  }
  return merged.length === ranges.length ? ranges : merged;
}
