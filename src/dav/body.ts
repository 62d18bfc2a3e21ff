import { DavError } from './errors.ts';
import type { Exchange } from './exchange.ts';

/** A body that means nothing is read to its end up to this size, so that the connection can be used again. */
const IGNORED_BODY_BYTES_MAX = 1024 * 1024;

/** The body of a request, to be read once. A refusal before its first piece is asked for may save the client the sending. */
export class RequestBody implements AsyncIterable<Uint8Array> {
  constructor(private readonly exchange: Pick<Exchange, 'request' | 'body'>) {}

  /** What the request says of the body's length, in bytes; `undefined` for chunks whose sender does not say. */
  get announcedBytes(): number | undefined {
    const { headers } = this.exchange.request;
    if (!this.isChunked) return Number(headers['content-length'] ?? 0);
    // Finder sends chunks, and says beforehand how much they are together.
    const expected = String(headers['x-expected-entity-length'] ?? '').trim();
    return /^\d{1,15}$/.test(expected) ? Number(expected) : undefined;
  }

  get isChunked(): boolean {
    return this.exchange.request.headers['transfer-encoding'] !== undefined;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.exchange.body()[Symbol.asyncIterator]();
  }

  /** For methods that take no body: throws `DavError` 415 when there is one. */
  async refuse(): Promise<void> {
    // Some clients send chunks of which there are none.
    const isAbsent = this.isChunked ? await this.#isEmpty() : this.announcedBytes === 0;
    if (isAbsent) return;
    throw new DavError(415, `${this.exchange.request.method} takes no body; send it without one`);
  }

  /**
   * For methods to which a body means nothing: reads and forgets it, so that the connection can be used
   * again. Throws `DavError` 413 for one that no client means seriously.
   */
  async ignore(): Promise<void> {
    if (!this.isChunked && this.announcedBytes === 0) return;
    let sizeBytes = this.isChunked ? 0 : (this.announcedBytes ?? 0);
    const check = () => {
      if (sizeBytes > IGNORED_BODY_BYTES_MAX)
        throw new DavError(
          413,
          `${this.exchange.request.method} takes no body, and this one is too large to be ignored`,
        );
    };
    check();
    if (!this.isChunked) sizeBytes = 0;
    for await (const piece of this) {
      sizeBytes += piece.length;
      check();
    }
  }

  async #isEmpty(): Promise<boolean> {
    for await (const piece of this) if (piece.length > 0) return false;
    return true;
  }
}
