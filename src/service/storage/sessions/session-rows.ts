import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { BLOCK_COLUMNS, type BlockRow } from '../blocks/contents.ts';

export interface SessionRow {
  readonly id: string;
  readonly ns: number;
  readonly concurrent: number;
  /** Bytes received; of a concurrent session the total, which is known when it is closed. */
  readonly sizeBytes: number;
  readonly closed: number;
  readonly startedMs: number;
}

export interface PieceRow extends BlockRow {
  /** Position in the file, in bytes. */
  readonly start: number;
}

const SELECT_PIECE = `
  SELECT session_piece.start, ${BLOCK_COLUMNS}
  FROM session_piece JOIN block ON block.id = session_piece.block`;

/** Prepared statements over upload sessions. */
export function sessionStatements(database: SqliteDatabase) {
  type Range = [session: string, from: number, to: number];
  return {
    find: database.prepare<[string], SessionRow>(
      `SELECT id, ns, concurrent, size AS sizeBytes, closed, started_ms AS startedMs FROM session WHERE id = ?`,
    ),
    expired: database.prepare<[before: number, limit: number], { id: string }>(
      'SELECT id FROM session WHERE started_ms <= ? ORDER BY started_ms LIMIT ?',
    ),
    add: database.prepare<[id: string, ns: number, concurrent: number, startedMs: number]>(
      'INSERT INTO session (id, ns, concurrent, size, closed, started_ms) VALUES (?, ?, ?, 0, 0, ?)',
    ),
    update: database.prepare<[sizeBytes: number, closed: number, id: string]>(
      'UPDATE session SET size = ?, closed = ? WHERE id = ?',
    ),
    drop: database.prepare<[string]>('DELETE FROM session WHERE id = ?'),
    pieces: database.prepare<Range, PieceRow>(
      `${SELECT_PIECE} WHERE session = ? AND start >= ? AND start < ? ORDER BY start`,
    ),
    lastPieces: database.prepare<[session: string, limit: number], PieceRow>(
      `${SELECT_PIECE} WHERE session = ? ORDER BY start DESC LIMIT ?`,
    ),
    addPiece: database.prepare<[session: string, start: number, block: number]>(
      'INSERT INTO session_piece (session, start, block) VALUES (?, ?, ?)',
    ),
    dropPieces: database.prepare<Range>(
      'DELETE FROM session_piece WHERE session = ? AND start >= ? AND start < ?',
    ),
  };
}
