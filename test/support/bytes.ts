/** Returns pseudo-random bytes from a seed. Bytes that compress or repeat would hide mistakes. */
export function pseudoRandomBytes(sizeBytes: number, seed: number): Buffer {
  const words = new Uint32Array(Math.ceil(sizeBytes / 4));
  let state = seed * 2654435761 + 1;
  for (let index = 0; index < words.length; index++) {
    // xorshift32
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[index] = state;
  }
  return Buffer.from(words.buffer, 0, sizeBytes);
}

/** Yields the body of a write in pieces of `pieceBytes`. */
export async function* bodyOf(
  content: string | Uint8Array,
  pieceBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(content);
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
