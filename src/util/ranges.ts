/** A run of bytes: from `start` up to, and not with, `end`. Never empty. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** More ranges than this in one request are no reader's, but an attempt to cost much with little. */
const RANGES_MAX = 64;
/** What lies between two ranges is sent along when it is shorter than the header of another part. */
const GAP_BYTES_MAX = 128;

/**
 * The bytes that a `Range` header asks for in `sizeBytes` bytes (RFC 9110 §14.2), in the order asked for;
 * ranges that overlap or nearly touch come as one. `undefined`: the header is to be ignored, as it is
 * malformed, of another unit, or asks for too much. `'unsatisfiable'`: there are no such bytes.
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
  // A suffix of an empty file is all of it (§14.1.2), and cannot be written as a range.
  if (ranges.length === 0) return sizeBytes === 0 && wanted.every(isSuffix) ? undefined : 'unsatisfiable';
  return coalesced(ranges);
}

function isSuffix(spec: string): boolean {
  return /^-0*[1-9]/.test(spec);
}

/** `undefined` for a range that is beyond the end. */
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

/** In the order asked for as long as no two meet, else in the order of the bytes. */
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
