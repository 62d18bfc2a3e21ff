import type { IncomingMessage } from 'node:http';
import { DavError } from './errors.ts';

/** Maximum size of a body that is read only to keep the connection usable, in bytes. */
const IGNORED_BODY_BYTES_MAX = 1024 * 1024;

interface BodySource {
  readonly request: IncomingMessage;
  body(): AsyncIterable<Uint8Array>;
}

/** The body of a request, to be read once. A request refused before the first read may never have to send it. */
export class RequestBody implements AsyncIterable<Uint8Array> {
  constructor(private readonly source: BodySource) {}

  /** The length that the headers announce, in bytes; `undefined` for a chunked body without one. */
  get announcedBytes(): number | undefined {
    const { headers } = this.source.request;
    if (!this.isChunked) return Number(headers['content-length'] ?? 0);
    // Finder sends chunks and announces their total length in this header.
    const expected = String(headers['x-expected-entity-length'] ?? '').trim();
    return /^\d{1,15}$/.test(expected) ? Number(expected) : undefined;
  }

  get isChunked(): boolean {
    return this.source.request.headers['transfer-encoding'] !== undefined;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.source.body()[Symbol.asyncIterator]();
  }

  /** Throws `DavError` 415 if there is a body. */
  async refuse(): Promise<void> {
    // Some clients announce chunks and send none.
    const isAbsent = this.isChunked ? await this.#isEmpty() : this.announcedBytes === 0;
    if (isAbsent) return;
    throw new DavError(415, `${this.#method} takes no body; send the request without one`);
  }

  /** Reads the body and discards it, so that the connection stays usable. Throws `DavError` 413 above the limit. */
  async ignore(): Promise<void> {
    if (!this.isChunked) {
      const announcedBytes = this.announcedBytes ?? 0;
      if (announcedBytes === 0) return;
      this.#requireIgnorable(announcedBytes);
    }
    let sizeBytes = 0;
    for await (const piece of this) {
      sizeBytes += piece.length;
      this.#requireIgnorable(sizeBytes);
    }
  }

  get #method(): string {
    return this.source.request.method ?? '';
  }

  #requireIgnorable(sizeBytes: number): void {
    if (sizeBytes > IGNORED_BODY_BYTES_MAX)
      throw new DavError(
        413,
        `${this.#method} takes no body and ignores one of up to ${IGNORED_BODY_BYTES_MAX} bytes; this one is larger`,
      );
  }

  async #isEmpty(): Promise<boolean> {
    for await (const piece of this) if (piece.length > 0) return false;
    return true;
  }
}
