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
