import { ApiError } from '../../src/api/errors.ts';
import { BodyReader } from '../../src/util/abort.ts';

/** Reads all of `body`. Throws `incomplete` when it is not `sizeBytes` long. */
export async function collected(
  body: AsyncIterable<Uint8Array>,
  sizeBytes: number | undefined,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const reader = new BodyReader(body, signal);
  try {
    const pieces: Uint8Array[] = [];
    let receivedBytes = 0;
    for (let piece = await reader.next(); piece; piece = await reader.next()) {
      pieces.push(Uint8Array.from(piece));
      receivedBytes += piece.length;
      if (receivedBytes > (sizeBytes ?? receivedBytes)) break;
    }
    if (receivedBytes !== (sizeBytes ?? receivedBytes))
      throw new ApiError('incomplete', `${sizeBytes} bytes were announced and ${receivedBytes} came`);
    return Buffer.concat(pieces);
  } finally {
    reader.close();
  }
}
