import { type ByteRange, parseRange } from '../../util/ranges.ts';

/**
 * The one range that a `Range` header asks for. `undefined`: none, or one that we may ignore (RFC 9110
 * §14.2), which several at once are: the service sends no multipart answers.
 */
export function singleRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const ranges = header === undefined ? undefined : parseRange(header, sizeBytes);
  if (ranges === undefined || ranges === 'unsatisfiable') return ranges;
  return ranges.length === 1 ? ranges[0] : undefined;
}

/** Whether an `If-None-Match` header names this revision, weak or strong, quoted or bare. */
export function namesRev(header: string | undefined, rev: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((one) => {
    const tag = one.trim();
    return tag === '*' || tag.replace(/^W\//, '').replace(/^"(.*)"$/, '$1') === rev;
  });
}
