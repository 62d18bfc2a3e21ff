/** Bytes that come from elsewhere, read into the reader's buffers. */
export interface ByteSource {
  /**
   * Reads the next bytes into `into`: as many as have come, and at least one. Returns their number; 0 at the end. One
   * read at a time.
   */
  read(into: Buffer): Promise<number>;
}

/** Reads all bytes of a source that has at most `sizeBytes`. Throws what the source throws. */
export async function readAll(source: ByteSource, sizeBytes: number): Promise<Buffer> {
  // One byte more, so that the last read finds the end.
  const bytes = Buffer.allocUnsafeSlow(sizeBytes + 1);
  let filledBytes = 0;
  while (filledBytes <= sizeBytes) {
    const count = await source.read(bytes.subarray(filledBytes));
    if (count === 0) break;
    filledBytes += count;
  }
  return bytes.subarray(0, filledBytes);
}
