/** A run of bytes: from `start` up to, and not with, `end`. Never empty. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}
