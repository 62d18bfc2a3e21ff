import { setImmediate as otherTasks } from 'node:timers/promises';
import type { Entry, Listing } from '../../drive/files.ts';
import { NO_LIVE_STATE } from '../properties/live-properties.ts';
import { type DeadProperties, MemberRows, type RowContext } from './propfind-rows.ts';
import { type Piece, RenderedListing, type RenderedListings } from './rendered-listings.ts';

/**
 * Size of a piece, in characters: about 700 rows, which are rendered in a millisecond. The C library maps a buffer of this
 * size by itself, so that its memory goes back to the system when it is dropped.
 */
const PIECE_LENGTH = 256 * 1024;

/** Pieces below this size, in bytes, are rendered again with their neighbours when a listing has changed. */
const SHORT_BYTES = PIECE_LENGTH / 2;

/** A folder whose members are rendered. */
export interface MembersOf {
  /** Key in `RenderedListings`. */
  readonly key: string;
  /** Ends with a slash. */
  readonly href: string;
  readonly listing: Listing;
  /** The version of the dead properties, read before they are; `undefined` if no row shows any. */
  readonly version: number | undefined;
  readonly dead: (entries: readonly Entry[]) => Promise<DeadProperties>;
}

/** Yields the rows of a folder's members in pieces, and keeps them if there is room. */
export async function* memberPieces(
  kept: RenderedListings,
  context: RowContext,
  { key, href, listing, version, dead }: MembersOf,
): AsyncGenerator<Uint8Array> {
  const before = kept.get(key);
  const isStateless = context.state === NO_LIVE_STATE;
  if (isStateless && before?.shows(listing, version)) {
    for (const { bytes } of before.pieces) yield bytes;
    return;
  }
  const { children } = listing;
  const rows = new MemberRows(context, href, children, dead);
  const known = new KnownPieces(before?.pieces ?? [], rows);
  let rendered: RenderedListing | undefined = new RenderedListing();
  if (children.length === 0) kept.keep(key, rendered);
  for (let at = 0; at < children.length; ) {
    const old = await known.at(children, at);
    // Not before the first piece: most listings have no other.
    if (!old && at > 0) await otherTasks();
    const piece = old ?? (await newPiece(children, at, rows, known));
    at += piece.entries.length;
    rendered = rendered && grown(kept, key, rendered, piece);
    yield piece.bytes;
  }
  const isLasting = isStateless && !rows.lacksChecksums;
  if (isLasting || rendered?.pieces.every(({ isPlain }) => isPlain)) rendered?.complete(listing, version);
}

/** Adds `piece`. Returns `undefined` if the listing is not kept any more. */
function grown(
  kept: RenderedListings,
  key: string,
  rendered: RenderedListing,
  piece: Piece,
): RenderedListing | undefined {
  // Another request may have put its own listing in this place, or a larger one may have taken the room.
  if (rendered.pieces.length > 0 && !kept.has(key, rendered)) return undefined;
  rendered.add(piece);
  return kept.keep(key, rendered) ? rendered : undefined;
}

async function newPiece(
  children: readonly Entry[],
  start: number,
  rows: MemberRows,
  known: KnownPieces,
): Promise<Piece> {
  let text = '';
  let isPlain = true;
  let end = start;
  for (; end < children.length; end++) {
    const entry = children[end] as Entry; // below length
    if (text.length >= PIECE_LENGTH) break;
    if (end > start && known.mayBegin(entry) && (await known.at(children, end))) break;
    if (!rows.covers(end)) await rows.cover(end, end + 1);
    isPlain = isPlain && rows.isPlain(entry);
    text += rows.row(entry);
  }
  return { entries: children.slice(start, end), bytes: Buffer.from(text), isPlain };
}

/** The pieces of an earlier listing of the folder that can be sent again. */
class KnownPieces {
  readonly #byFirst = new Map<Entry | undefined, Piece>();

  constructor(
    pieces: readonly Piece[],
    private readonly rows: MemberRows,
  ) {
    for (const piece of pieces)
      if (piece.isPlain && piece.bytes.length >= SHORT_BYTES) this.#byFirst.set(piece.entries[0], piece);
  }

  mayBegin(entry: Entry): boolean {
    return this.#byFirst.has(entry);
  }

  /** Returns the piece with the rows of the entries from `start` on. */
  async at(children: readonly Entry[], start: number): Promise<Piece | undefined> {
    const piece = this.#byFirst.get(children[start]);
    if (!piece?.entries.every((entry, index) => entry === children[start + index])) return undefined;
    await this.rows.cover(start, start + piece.entries.length);
    return piece.entries.every((entry) => this.rows.isPlain(entry)) ? piece : undefined;
  }
}
