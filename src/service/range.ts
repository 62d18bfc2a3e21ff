import type { ByteRange } from '../util/ranges.ts';

const SINGLE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * The one range that a `Range` header asks for, of `sizeBytes` bytes (RFC 9110 §14.1.2). `undefined`:
 * none, or one we may ignore, which several at once and other units are. `'unsatisfiable'`: it lies
 * wholly behind the end.
 */
export function singleRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = (header && SINGLE.exec(header)) || [];
  if (first === '' && last === '') return undefined;
  if (first !== '' && last !== '' && Number(first) > Number(last)) return undefined;
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? sizeBytes : Math.min(sizeBytes, Number(last) + 1);
  return start < end ? { start, end } : 'unsatisfiable';
}
