import { setMaxListeners } from 'node:events';
import { onAbort } from '../../src/util/abort.ts';
import type { ByteSource } from '../../src/util/byte-source.ts';

/** Returns the `read` of a source with the bytes of `chunks`: one chunk or a part of it at a time. An abort ends it. */
export function readOf(chunks: AsyncIterable<Uint8Array>, signal?: AbortSignal): ByteSource['read'] {
  const iterator = chunks[Symbol.asyncIterator]();
  let rest = new Uint8Array();
  // A download that is cut and resumed has the same signal each time.
  if (signal) setMaxListeners(0, signal);
  onAbort(signal, () => void iterator.return?.().catch(() => {}));
  return async (into) => {
    while (rest.length === 0) {
      const step = await iterator.next();
      signal?.throwIfAborted();
      if (step.done) return 0;
      rest = new Uint8Array(step.value);
    }
    const part = rest.subarray(0, into.length);
    into.set(part);
    rest = rest.subarray(part.length);
    return part.length;
  };
}

/** Yields the bytes of `source` as they come. */
export async function* piecesOf(source: ByteSource): AsyncGenerator<Buffer> {
  const into = Buffer.alloc(64 * 1024);
  for (let count = await source.read(into); count > 0; count = await source.read(into))
    yield Buffer.from(into.subarray(0, count));
}

/** Copies and joins pieces that are valid only until the next one. */
export async function joined(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const copies: Buffer[] = [];
  for await (const piece of pieces) copies.push(Buffer.from(piece));
  return Buffer.concat(copies);
}
