import { randomBytes } from 'node:crypto';
import { BLOCK_BYTES } from '../../../util/content-hash.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { StagedBlock } from '../blocks/block-writer.ts';
import type { Contents } from '../blocks/contents.ts';
import type { Transaction } from '../committer.ts';
import { StorageError, type StorageRefusal } from '../storage.ts';
import { type PieceRow, type SessionRow, sessionStatements } from './session-rows.ts';

/** Lifetime of a session from its start, in ms (service-api.md §9.5). */
export const SESSION_LIFE_MS = 7 * 24 * 60 * 60 * 1000;

/** Maximum size of a file, in bytes. */
const FILE_BYTES_MAX = 2 ** 41 - 2 ** 22;

/** Expired sessions, and pieces of them, that one transaction clears away: some 20 ms. */
const EXPIRED_SESSIONS_MAX = 50;
const EXPIRED_PIECES_MAX = 500;

/** A received part: its offset and its staged blocks, which end at multiples of 4 MiB. */
export interface Part {
  readonly offset: number;
  readonly sizeBytes: number;
  readonly blocks: readonly StagedBlock[];
  /** Whether the part is the last one. */
  readonly close: boolean;
}

/** A whole block made of several pieces, before the transaction that uses it. */
export interface Joined {
  readonly start: number;
  readonly block: StagedBlock;
  /** The stored pieces; the first block of the part may follow them. */
  readonly pieces: readonly PieceRow[];
}

/** The pieces of a joined block have changed since: it has to be joined again. */
export class PiecesChanged extends Error {
  override readonly name = 'PiecesChanged';
}

/**
 * Upload sessions: durable bytes that belong to no file yet (service-api.md §9.5). Pieces never cross a 4 MiB boundary;
 * a complete block becomes one piece.
 */
export class Sessions {
  readonly #sql: ReturnType<typeof sessionStatements>;

  constructor(
    database: SqliteDatabase,
    private readonly contents: Contents,
  ) {
    this.#sql = sessionStatements(database);
  }

  /** Returns a session. Throws `session/not_found`, also for an expired one. */
  find(ns: number, id: string, nowMs: number): SessionRow {
    const session = this.#sql.find.get(id);
    if (session?.ns !== ns || session.startedMs + SESSION_LIFE_MS <= nowMs) throw refused('not_found');
    return session;
  }

  /** Opens a session. */
  start(transaction: Transaction, ns: number, concurrent: boolean): SessionRow {
    const id = `pid_upload_session:${randomBytes(16).toString('base64url')}`;
    this.#sql.add.run(id, ns, concurrent ? 1 : 0, transaction.nowMs);
    return { id, ns, concurrent: concurrent ? 1 : 0, sizeBytes: 0, closed: 0, startedMs: transaction.nowMs };
  }

  /** Throws unless a part may be added at `offset`, as far as that shows before its bytes arrive. */
  checkOffset(session: SessionRow, offset: number): void {
    if (session.concurrent) {
      if (offset % BLOCK_BYTES !== 0) throw refused('concurrent_session_invalid_offset');
      if (session.closed && offset > session.sizeBytes) throw refused('closed');
    } else {
      if (session.closed) throw refused('closed');
      checkSize(session, offset);
    }
    if (offset > FILE_BYTES_MAX) throw refused('too_large');
  }

  /**
   * Adds a part, and the block it completes if that was in pieces. Throws the refusal of an invalid part, and
   * `PiecesChanged`.
   */
  append(transaction: Transaction, session: SessionRow, part: Part, joined?: Joined): void {
    this.checkOffset(session, part.offset);
    const end = part.offset + part.sizeBytes;
    if (end > FILE_BYTES_MAX) throw refused('too_large');
    if (session.concurrent) this.#checkConcurrent(session, part);
    if (!isOf(joined, this.piecesBefore(session.ns, session.id, part))) throw new PiecesChanged();
    let start = part.offset;
    for (const block of part.blocks) {
      this.#putPieces(transaction, session.id, start, start + block.sizeBytes, block);
      start += block.sizeBytes;
    }
    if (joined)
      this.#putPieces(transaction, session.id, joined.start, joined.start + BLOCK_BYTES, joined.block);
    if (session.concurrent) {
      if (part.close) this.#sql.update.run(end, 1, session.id);
    } else this.#sql.update.run(end, part.close ? 1 : 0, session.id);
  }

  /** Returns the pieces of the 4 MiB block that contains byte `offset`. */
  piecesAround(session: string, offset: number): PieceRow[] {
    const start = offset - (offset % BLOCK_BYTES);
    return this.#sql.pieces.all(session, start, start + BLOCK_BYTES);
  }

  /**
   * Returns the pieces that a part's first block completes to a whole block; none if it does not, or does not follow
   * them.
   */
  piecesBefore(
    ns: number,
    id: string,
    { offset, blocks: [first] }: Pick<Part, 'offset' | 'blocks'>,
  ): PieceRow[] {
    const inBlock = offset % BLOCK_BYTES;
    if (inBlock === 0 || !first || inBlock + first.sizeBytes < BLOCK_BYTES) return [];
    return this.#endsAt(ns, id, offset) ? this.piecesAround(id, offset) : [];
  }

  /** Returns the pieces of the last block of a session with `sizeBytes`; none if that block is whole already. */
  tailPieces(ns: number, id: string, sizeBytes: number): PieceRow[] {
    const pieces = this.#endsAt(ns, id, sizeBytes) ? this.piecesAround(id, sizeBytes) : [];
    return pieces.length > 1 ? pieces : [];
  }

  #endsAt(ns: number, id: string, offset: number): boolean {
    const session = this.#sql.find.get(id);
    return session?.ns === ns && session.sizeBytes === offset;
  }

  /**
   * Returns the blocks of a session that is complete at `offset`; `joined` replaces a last block in pieces. Throws the
   * refusal of an incomplete session, and `PiecesChanged`.
   */
  complete(session: SessionRow, offset: number, joined?: Joined): StagedBlock[] {
    if (session.concurrent && !session.closed) throw refused('concurrent_session_not_closed');
    checkSize(session, offset);
    // A block in pieces would make the file's block end after the first piece.
    if (!isOf(joined, this.tailPieces(session.ns, session.id, offset))) throw new PiecesChanged();
    const pieces = this.#sql.pieces.all(session.id, 0, joined?.start ?? offset);
    const blocks: StagedBlock[] = joined ? [...pieces, joined.block] : pieces;
    if (blocks.reduce((sum, block) => sum + block.sizeBytes, 0) !== offset)
      throw refused('concurrent_session_missing_data');
    return blocks;
  }

  /** Ends a session, and removes blocks that no file has taken over. */
  drop(transaction: Transaction, session: string): void {
    this.#dropPieces(transaction, session, Number.MAX_SAFE_INTEGER);
    this.#sql.drop.run(session);
  }

  /** Returns whether some session has expired. */
  hasExpired(nowMs: number): boolean {
    return this.#sql.expired.get(nowMs - SESSION_LIFE_MS, 1) !== undefined;
  }

  /** Clears away some expired sessions; a large one piece by piece. */
  dropExpired(transaction: Transaction): void {
    let room = EXPIRED_PIECES_MAX;
    for (const { id } of this.#sql.expired.all(transaction.nowMs - SESSION_LIFE_MS, EXPIRED_SESSIONS_MAX)) {
      room -= this.#dropPieces(transaction, id, room);
      if (room <= 0) return;
      this.#sql.drop.run(id);
    }
  }

  /** Drops up to `limit` pieces of a session, the last ones first. Returns their number. */
  #dropPieces(transaction: Transaction, session: string, limit: number): number {
    const pieces = this.#sql.lastPieces.all(session, limit);
    const first = pieces.at(-1);
    if (!first) return 0;
    this.#sql.dropPieces.run(session, first.start, Number.MAX_SAFE_INTEGER);
    for (const piece of pieces) this.contents.collectBlock(transaction, piece);
    return pieces.length;
  }

  /** Throws unless the part and the known end of a concurrent session fit together. */
  #checkConcurrent(session: SessionRow, part: Part): void {
    const end = part.offset + part.sizeBytes;
    const isLast = part.close || (session.closed && end === session.sizeBytes);
    if (part.sizeBytes % BLOCK_BYTES !== 0 && !isLast) throw refused('concurrent_session_invalid_data_size');
    if (session.closed && (end > session.sizeBytes || (part.close && end !== session.sizeBytes)))
      throw refused('closed');
    if (part.close && this.#sql.pieces.all(session.id, end, Number.MAX_SAFE_INTEGER).length > 0)
      throw refused('concurrent_session_invalid_offset');
  }

  /** Replaces the pieces between `start` and `end` by one. */
  #putPieces(
    transaction: Transaction,
    session: string,
    start: number,
    end: number,
    block: StagedBlock,
  ): void {
    const replaced = this.#sql.pieces.all(session, start, end);
    this.#sql.dropPieces.run(session, start, end);
    this.#sql.addPiece.run(session, start, this.contents.keepBlock(block));
    for (const piece of replaced) this.contents.collectBlock(transaction, piece);
  }
}

/** Returns the refusal of a call on a session. */
export function refused(
  tag: Extract<StorageRefusal, { kind: 'session' }>['tag'],
  correctOffset?: number,
): StorageError {
  return new StorageError({ kind: 'session', tag, ...(correctOffset !== undefined && { correctOffset }) });
}

/** Returns whether `joined` was made of exactly these pieces; without pieces there must be no joined block. */
function isOf(joined: Joined | undefined, pieces: readonly PieceRow[]): boolean {
  return arePieces(joined?.pieces ?? [], pieces);
}

/** Returns whether two lists have the same pieces: the same bytes at the same offsets. */
export function arePieces(ones: readonly PieceRow[], others: readonly PieceRow[]): boolean {
  return (
    ones.length === others.length &&
    ones.every(({ start, hash }, index) => {
      const other = others[index];
      return other?.start === start && other.hash.equals(hash);
    })
  );
}

/** Throws the correct offset, from which a client that lost an answer can continue. */
function checkSize(session: SessionRow, offset: number): void {
  if (offset !== session.sizeBytes) throw refused('incorrect_offset', session.sizeBytes);
}
