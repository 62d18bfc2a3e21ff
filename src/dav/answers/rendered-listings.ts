import { LRUCache } from 'lru-cache';
import type { Entry, Listing } from '../../drive/files.ts';
import type { PropertySelection } from '../properties/property-selection.ts';

/** Memory of a piece for each of its entries, beside its bytes. */
const ENTRY_BYTES = 8;

/** Approximate memory of a listing without its pieces, in bytes. */
const LISTING_BYTES = 500;

/** The rendered rows of consecutive members of a folder. */
export interface Piece {
  readonly entries: readonly Entry[];
  readonly bytes: Uint8Array;
  /** Whether no row depends on anything but its entry. */
  readonly isPlain: boolean;
}

/** The rendered rows of a folder's members, from the first one on. */
export class RenderedListing {
  #pieces: Piece[] = [];
  #bytes = 0;
  #answer: Buffer | undefined;
  /** What all pieces together show; `undefined` while pieces are missing. */
  #shown: { readonly listing: Listing; readonly version: number | undefined } | undefined;

  get pieces(): readonly Piece[] {
    return this.#pieces;
  }

  /** The whole answer, if it is short enough. */
  get answer(): Buffer | undefined {
    return this.#answer;
  }

  get sizeBytes(): number {
    return LISTING_BYTES + this.#bytes;
  }

  /** Returns whether this shows all of `listing` and the dead properties of `version`. */
  shows(listing: Listing, version: number | undefined): boolean {
    return this.#shown?.listing === listing && this.#shown.version === version;
  }

  add(piece: Piece): void {
    this.#pieces.push(piece);
    this.#bytes += piece.bytes.length + ENTRY_BYTES * piece.entries.length;
  }

  complete(listing: Listing, version: number | undefined): void {
    this.#shown = { listing, version };
  }

  /** Adds the whole answer. Its `rows`, those of the members, are the bytes of the pieces from now on. */
  join(answer: Buffer, rows: Buffer): void {
    let end = 0;
    this.#pieces = this.#pieces.map((piece) => {
      const start = end;
      end += piece.bytes.length;
      return { ...piece, bytes: rows.subarray(start, end) };
    });
    this.#bytes += answer.length - rows.length;
    this.#answer = answer;
  }
}

/**
 * Rendered listings in bounded memory. Listings and entries are immutable values, so whatever was rendered from one stays
 * valid: nothing here needs to be invalidated.
 */
export class RenderedListings {
  readonly #kept: LRUCache<string, { readonly rendered: RenderedListing }>;
  readonly #ids = new WeakMap<object, number>();
  #lastId = 0;

  constructor(bytesMax: number) {
    this.#kept = new LRUCache({ maxSize: bytesMax });
  }

  /** Returns the key of the folder at `href` in a drive. */
  key(drive: object, selection: PropertySelection, href: string): string {
    return `${this.#idOf(drive)} ${this.#idOf(selection)} ${href}`;
  }

  get(key: string): RenderedListing | undefined {
    return this.#kept.get(key)?.rendered;
  }

  /** Keeps a listing, also one that grew since. Returns whether there is room. */
  keep(key: string, rendered: RenderedListing): boolean {
    // A new object each time: lru-cache ignores the new size of the same value.
    this.#kept.set(key, { rendered }, { size: rendered.sizeBytes + key.length });
    return this.#kept.has(key);
  }

  /** Returns whether the listing is still kept, and no other one in its place. */
  has(key: string, rendered: RenderedListing): boolean {
    return this.#kept.peek(key)?.rendered === rendered;
  }

  #idOf(value: object): number {
    const known = this.#ids.get(value);
    if (known !== undefined) return known;
    this.#lastId += 1;
    this.#ids.set(value, this.#lastId);
    return this.#lastId;
  }
}
