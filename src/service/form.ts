import type { Exchange } from '../http/exchange.ts';

/** The fields of a form that a request brings; `undefined` if it is longer than `maxBytes`. */
export async function formOf(exchange: Exchange, maxBytes: number): Promise<URLSearchParams | undefined> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of exchange.body()) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
}
