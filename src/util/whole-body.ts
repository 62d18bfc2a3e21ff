/**
 * Reads a body into memory. Returns `undefined` for one of more than `bytesMax` bytes, and leaves the rest of it unread.
 * The pieces must stay valid: a producer that reuses its buffer needs a copy of each.
 */
export async function readBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytesMax: number,
): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of body) {
    sizeBytes += piece.length;
    if (sizeBytes > bytesMax) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Reads pieces to their end and joins them. For content whose size the caller has limited; they must stay valid too. */
export async function joinPieces(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}
