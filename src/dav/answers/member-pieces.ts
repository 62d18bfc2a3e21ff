import { setImmediate as otherTasks } from 'node:timers/promises';
import type { Entry, Listing } from '../../drive/files.ts';
import { NO_LIVE_STATE } from '../properties/live-properties.ts';
import { type DeadProperties, lacksChecksums, MemberRows, type RowContext } from './propfind-rows.ts';
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
  readonly dead: () => Promise<DeadProperties>;
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
  const properties = await dead();
  const isLasting = isStateless && !lacksChecksums(properties);
  const rows = new MemberRows(context, href, properties);
  const known = new KnownPieces(before?.pieces ?? [], rows);
  const { children } = listing;
  let rendered: RenderedListing | undefined = new RenderedListing();
  if (children.length === 0) kept.keep(key, rendered);
  for (let at = 0; at < children.length; ) {
    const old = known.at(children, at);
    // Not before the first piece: most listings have no other.
    if (!old && at > 0) await otherTasks();
    const piece = old ?? newPiece(children, at, rows, known);
    at += piece.entries.length;
    rendered = rendered && grown(kept, key, rendered, piece);
    yield piece.bytes;
  }
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

function newPiece(children: readonly Entry[], start: number, rows: MemberRows, known: KnownPieces): Piece {
  let text = '';
  let isPlain = true;
  let end = start;
  for (; end < children.length; end++) {
    const entry = children[end] as Entry; // below length
    if (text.length >= PIECE_LENGTH || (end > start && known.at(children, end))) break;
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

  /** Returns the piece with the rows of the entries from `start` on. */
  at(children: readonly Entry[], start: number): Piece | undefined {
    const piece = this.#byFirst.size > 0 ? this.#byFirst.get(children[start]) : undefined;
    const isSame = (entry: Entry, index: number) =>
      entry === children[start + index] && this.rows.isPlain(entry);
    return piece?.entries.every(isSame) ? piece : undefined;
  }
}
