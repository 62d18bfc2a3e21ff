import { TextDecoder } from 'node:util';
import { DavError } from '../errors.ts';

type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be';

/** The names that an XML declaration may use for the detected encoding. */
const DECLARABLE: Record<Encoding, RegExp> = {
  'utf-8': /^(utf-?8|us-ascii|ascii)$/i,
  'utf-16le': /^(utf-16(le)?|ucs-2)$/i,
  'utf-16be': /^(utf-16(be)?|ucs-2)$/i,
};

/** How many bytes are needed to detect a byte order mark, or `<` in UTF-16. */
const SNIFFED_BYTES = 2;

/** Decodes an XML document in UTF-8 or UTF-16, detected by its byte order mark or first character. */
export class XmlTextDecoder {
  #start: Uint8Array = new Uint8Array(0);
  #encoding: Encoding = 'utf-8';
  #decoder: TextDecoder | undefined;

  /** Throws `DavError` 400 for bytes that are invalid in the document's encoding. */
  decode(chunk: Uint8Array): string {
    if (this.#decoder) return this.#run(chunk, true);
    const bytes = this.#start.length === 0 ? chunk : Buffer.concat([this.#start, chunk]);
    if (bytes.length < SNIFFED_BYTES) {
      this.#start = bytes;
      return '';
    }
    return this.#begin(bytes, true);
  }

  end(): string {
    return this.#decoder ? this.#run(new Uint8Array(0), false) : this.#begin(this.#start, false);
  }

  /** Throws `DavError` 415 when the document declares another encoding than the detected one. */
  check(declared: string | undefined): void {
    if (declared === undefined || DECLARABLE[this.#encoding].test(declared)) return;
    throw new DavError(
      415,
      `the XML declares the encoding ${declared}, which is not supported; send it in UTF-8`,
    );
  }

  #begin(bytes: Uint8Array, more: boolean): string {
    this.#encoding = encodingOf(bytes);
    this.#decoder = new TextDecoder(this.#encoding, { fatal: true });
    return this.#run(bytes, more);
  }

  #run(bytes: Uint8Array, more: boolean): string {
    try {
      return this.#decoder?.decode(bytes, { stream: more }) ?? '';
    } catch {
      throw new DavError(400, `the XML body is not valid ${this.#encoding.toUpperCase()}`);
    }
  }
}

function encodingOf([first, second]: Uint8Array): Encoding {
  if ((first === 0xff && second === 0xfe) || (first === 0x3c && second === 0)) return 'utf-16le';
  if ((first === 0xfe && second === 0xff) || (first === 0 && second === 0x3c)) return 'utf-16be';
  return 'utf-8';
}
