import type { IncomingMessage } from 'node:http';
import { UNWANTED_BODY_BYTES_MAX } from '../util/unread-body.ts';
import { DavError } from './errors.ts';

/**
 * The body of a request, to be read once. When its first piece is asked for, the server gives the leave that
 * a client may be waiting for (`Expect: 100-continue`, RFC 9110 §10.1.1), so a refusal before that saves it the
 * sending. Leaving it early does not close the connection, as Node's own iterator would, or nobody would
 * learn why.
 */
export class RequestBody implements AsyncIterable<Uint8Array> {
  #awaitsLeave: boolean;

  constructor(private readonly request: IncomingMessage) {
    this.#awaitsLeave = /^100-continue$/i.test(String(request.headers.expect ?? '').trim());
  }

  /** The client waits before it sends the body. */
  get awaitsLeave(): boolean {
    return this.#awaitsLeave;
  }

  /** What the request says of the body's length, in bytes; `undefined` for chunks whose sender does not say. */
  get announcedBytes(): number | undefined {
    const { headers } = this.request;
    if (!this.isChunked) return Number(headers['content-length'] ?? 0);
    // Finder sends chunks, and says beforehand how much they are together.
    const expected = String(headers['x-expected-entity-length'] ?? '').trim();
    return /^\d{1,15}$/.test(expected) ? Number(expected) : undefined;
  }

  get isChunked(): boolean {
    return this.request.headers['transfer-encoding'] !== undefined;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    this.#awaitsLeave = false;
    yield* this.request.iterator({ destroyOnReturn: false });
  }

  /** For methods that take no body: throws `DavError` 415 when there is one. */
  async refuse(): Promise<void> {
    // Some clients send chunks of which there are none.
    const isAbsent = this.isChunked ? await this.#isEmpty() : this.announcedBytes === 0;
    if (isAbsent) return;
    throw new DavError(415, `${this.request.method} takes no body; send it without one`);
  }

  /**
   * For methods to which a body means nothing: reads and forgets it, so that the connection can be used
   * again. Throws `DavError` 413 for one that no client means seriously.
   */
  async ignore(): Promise<void> {
    if (!this.isChunked && this.announcedBytes === 0) return;
    let sizeBytes = this.isChunked ? 0 : (this.announcedBytes ?? 0);
    const check = () => {
      if (sizeBytes > UNWANTED_BODY_BYTES_MAX)
        throw new DavError(
          413,
          `${this.request.method} takes no body, and this one is too large to be ignored`,
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
