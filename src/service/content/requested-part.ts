import { type ByteRange, parseRange } from '../../util/ranges.ts';

/**
 * Returns the only range of a `Range` header. `undefined`: none, or one that may be ignored (RFC 9110 §14.2); so are
 * several ranges, because the service sends no multipart answers.
 */
export function singleRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const ranges = header === undefined ? undefined : parseRange(header, sizeBytes);
  if (ranges === undefined || ranges === 'unsatisfiable') return ranges;
  return ranges.length === 1 ? ranges[0] : undefined;
}

/** Whether an `If-None-Match` header contains this revision, weak or strong, quoted or bare. */
export function namesRev(header: string | undefined, rev: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((one) => {
    const tag = one.trim();
    return tag === '*' || tag.replace(/^W\//, '').replace(/^"(.*)"$/, '$1') === rev;
  });
}
