import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Transaction } from '../committer.ts';
import { insufficientSpace } from '../errors.ts';
import type { StagedBlock } from './block-writer.ts';
import { hashOfBlocks } from './staging.ts';

/** A block's row. */
export interface BlockRow {
  readonly id: number;
  readonly hash: Buffer;
  readonly sizeBytes: number;
  readonly inline: number;
  /** Its name in the block store, if it is there. */
  readonly name: string;
}

/**
 * Reference counts of contents and blocks. A content exists while a revision references it or a reader reads it, a
 * block while a content or an upload session references it. Methods that change something must run inside a
 * transaction.
 */
export class Contents {
  readonly #sql: ReturnType<typeof statements>;
  /** Number of readers of each content. Like an open file, a content exists until its last reader is done. */
  readonly #readers = new Map<number, number>();
  /**
   * The highest id of a removed block. A new block has a higher one: in PostgreSQL it would replace the other's row within one
   * commit, and with it the bytes for those who still read them.
   */
  #removedBlock = 0;

  /**
   * `elsewhere` is given for a copy of rows that other processes change too. It returns the bytes of a small block, which
   * the copy does not have.
   */
  constructor(
    private readonly database: SqliteDatabase,
    private readonly elsewhere?: (block: BlockRow) => Promise<Buffer | undefined>,
  ) {
    this.#sql = statements(database);
  }

  /** Whether other processes may remove a content while it is being read here. */
  get isShared(): boolean {
    return this.elsewhere !== undefined;
  }

  /** Returns the block with this hash. */
  block(hash: Buffer): BlockRow | undefined {
    return this.#sql.blockByHash.get(hash);
  }

  /** Whether the database is closed. */
  get isClosed(): boolean {
    return !this.database.open;
  }

  /** Whether some block is in a bucket. */
  get hasNames(): boolean {
    return this.#sql.someName.get() !== undefined;
  }

  /** Returns the name in the block store of the block with this hash; `undefined` if it is not there. */
  nameOf(hash: Buffer): string | undefined {
    const block = this.block(hash);
    return block?.inline === 0 ? block.name : undefined;
  }

  /** Returns the row id of a staged block; adds the row if missing, and the bytes of a small block if they are not good. */
  keepBlock(block: StagedBlock): number {
    const known = this.block(block.hash);
    if (known) {
      if (block.bytes) this.#replaceBytes(known.id, block.bytes);
      // A block that was stored before there were checksums gets them now.
      else if (block.pieces) this.#sql.addPieces.run(known.id, block.pieces);
      return known.id;
    }
    const isInline = block.bytes ? 1 : 0;
    const id = Number(
      this.#sql.addBlock.run(this.#removedBlock, block.hash, block.sizeBytes, isInline).lastInsertRowid,
    );
    if (block.bytes) {
      this.#sql.putBytes.run(id, block.bytes);
      return id;
    }
    if (block.pieces) this.#sql.addPieces.run(id, block.pieces);
    if (block.name !== block.hash.toString('hex')) this.#sql.addName.run(id, block.name);
    return id;
  }

  /** Stores the bytes of a small block unless equal ones are there. A copy has none, and commits them with the block's row. */
  #replaceBytes(id: number, bytes: Buffer): void {
    if (this.#sql.putBytes.run(id, bytes).changes > 0) this.#sql.touchBlock.run(id);
  }

  /** Returns the row id of the content made of these blocks; adds the row if missing. */
  keep(blocks: readonly StagedBlock[]): number {
    const hash = hashOfBlocks(blocks);
    const known = this.#sql.contentByHash.get(hash);
    if (known) {
      for (const block of blocks) if (block.bytes) this.keepBlock(block);
      return known.id;
    }
    const sizeBytes = blocks.reduce((sum, block) => sum + block.sizeBytes, 0);
    const id = Number(this.#sql.addContent.run(hash, sizeBytes).lastInsertRowid);
    blocks.forEach((block, position) => {
      this.#sql.addContentBlock.run(id, position, this.keepBlock(block));
    });
    return id;
  }

  /**
   * Adds a reference from a revision of `ns`. The first one charges the quota. Throws `insufficient_space` beyond the
   * limit.
   */
  addRevision(ns: number, content: number): void {
    if (this.#sql.addRevision.run(ns, content).changes > 0) return;
    this.#sql.addHolding.run(ns, content);
    if (this.#sql.charge.run({ ns, content }).changes === 0) throw insufficientSpace();
  }

  /**
   * Adds a reference from a live file of `ns`. The revision has paid for the first file; each further one charges the
   * quota. Throws `insufficient_space`.
   */
  addFile(ns: number, content: number): void {
    const files = this.#sql.addFiles.get({ ns, content, files: 1 })?.files ?? 0;
    if (files > 1 && this.#sql.charge.run({ ns, content }).changes === 0) throw insufficientSpace();
  }

  /** Removes the reference of a live file; its history still references the content. */
  dropFile(ns: number, content: number): void {
    const files = this.#sql.addFiles.get({ ns, content, files: -1 })?.files ?? 0;
    if (files > 0) this.#sql.refund.run({ ns, content });
  }

  /**
   * Removes the reference of a revision, and what nothing references any more. Returns how many blocks the removed content
   * had.
   */
  dropRevision(transaction: Transaction, ns: number, content: number): number {
    const left = this.#sql.dropRevision.get(ns, content);
    if (!left || left.revisions > 0) return 0;
    this.#sql.dropHolding.run(ns, content);
    this.#sql.refund.run({ ns, content });
    return this.collect(transaction, content);
  }

  /** Removes the content unless a revision or a reader references it. Returns how many blocks it had then. */
  collect(transaction: Transaction, content: number): number {
    if (this.#readers.has(content) || this.#sql.isReferenced.get(content, content)) return 0;
    const blocks = this.#sql.blocksOf.all(content, 0, -1);
    this.#sql.dropContentBlocks.run(content);
    this.#sql.dropContent.run(content);
    for (const block of blocks) this.collectBlock(transaction, block);
    return blocks.length;
  }

  /** Removes the block unless a content or a session references it. */
  collectBlock(transaction: Transaction, block: BlockRow): void {
    if (this.#sql.isNeeded.get(block.id, block.id)) return;
    if (block.inline) this.#sql.dropBytes.run(block.id);
    else {
      transaction.orphans.push(block.name);
      // A copy has no foreign keys that would do it.
      this.#sql.dropPieces.run(block.id);
      this.#sql.dropName.run(block.id);
    }
    this.#sql.dropBlock.run(block.id);
    this.#removedBlock = Math.max(this.#removedBlock, block.id);
  }

  /**
   * Returns those of the next `count` contents after number `after` that no revision references: contents that were
   * being read when the process crashed. `last` is the number to continue after, if there are more.
   */
  unreferenced(
    after: number,
    count: number,
  ): { readonly contents: number[]; readonly last: number | undefined } {
    const rows = this.#sql.references.all(after, count);
    return {
      contents: rows.filter(({ isReferenced }) => !isReferenced).map(({ id }) => id),
      last: rows.length < count ? undefined : rows.at(-1)?.id,
    };
  }

  /** Returns up to `count` blocks of a content, in order. */
  blocksOf(content: number, from: number, count: number): BlockRow[] {
    return this.#sql.blocksOf.all(content, from, count);
  }

  /** Returns the bytes of a small block; `undefined` if they are lost. */
  async bytesOf(block: BlockRow): Promise<Buffer | undefined> {
    return this.#sql.bytesOf.get(block.id)?.bytes ?? (await this.elsewhere?.(block));
  }

  /** Returns the checksums of the pieces of a block; `undefined` if it was stored without. */
  piecesOf({ id, hash }: BlockRow): Buffer | undefined {
    return this.#sql.piecesOf.get(id, hash)?.checksums;
  }

  /** Keeps a content until `stopReading`, even if its last revision is removed, unless others may remove it. */
  startReading(content: number): void {
    if (this.isShared) return;
    this.#readers.set(content, (this.#readers.get(content) ?? 0) + 1);
  }

  /** Whether any content is being read. */
  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** Returns whether that was the last reader of a content without a revision. The caller then has to collect it. */
  stopReading(content: number): boolean {
    if (this.isShared) return false;
    const left = (this.#readers.get(content) ?? 1) - 1;
    if (left > 0) this.#readers.set(content, left);
    else this.#readers.delete(content);
    return left <= 0 && this.#sql.isReferenced.get(content, content) === undefined;
  }
}

/** A block in the folder has its hash as its name. */
export const BLOCK_COLUMNS = `block.id, block.hash, block.size AS sizeBytes, block.inline,
  coalesce((SELECT name FROM block_name WHERE block_name.block = block.id), lower(hex(block.hash))) AS name`;

/** Prepared statements over blocks, contents and their references. */
function statements(database: SqliteDatabase) {
  type Id = { id: number };
  return {
    blockByHash: database.prepare<[Buffer], BlockRow>(`SELECT ${BLOCK_COLUMNS} FROM block WHERE hash = ?`),
    addBlock: database.prepare<[idsUpTo: number, Buffer, number, number]>(
      `INSERT INTO block (id, hash, size, inline)
       VALUES (max(?, (SELECT coalesce(max(id), 0) FROM block)) + 1, ?, ?, ?)`,
    ),
    putBytes: database.prepare<[number, Buffer]>(
      `INSERT INTO block_bytes (block, bytes) VALUES (?, ?)
       ON CONFLICT (block) DO UPDATE SET bytes = excluded.bytes WHERE bytes <> excluded.bytes`,
    ),
    touchBlock: database.prepare<[number]>('UPDATE block SET inline = 1 WHERE id = ?'),
    dropBlock: database.prepare<[number]>('DELETE FROM block WHERE id = ?'),
    dropPieces: database.prepare<[number]>('DELETE FROM block_pieces WHERE block = ?'),
    dropName: database.prepare<[number]>('DELETE FROM block_name WHERE block = ?'),
    dropBytes: database.prepare<[number]>('DELETE FROM block_bytes WHERE block = ?'),
    bytesOf: database.prepare<[number], { bytes: Buffer }>('SELECT bytes FROM block_bytes WHERE block = ?'),
    addPieces: database.prepare<[number, Buffer]>(
      'INSERT OR IGNORE INTO block_pieces (block, checksums) VALUES (?, ?)',
    ),
    someName: database.prepare<[]>('SELECT 1 FROM block_name LIMIT 1'),
    addName: database.prepare<[number, string]>('INSERT INTO block_name (block, name) VALUES (?, ?)'),
    piecesOf: database.prepare<[number, Buffer], { checksums: Buffer }>(
      'SELECT checksums FROM block_pieces JOIN block ON block.id = block_pieces.block WHERE block.id = ? AND hash = ?',
    ),
    isNeeded: database.prepare<[number, number]>(
      `SELECT 1 FROM content_block WHERE block = ? UNION ALL SELECT 1 FROM session_piece WHERE block = ? LIMIT 1`,
    ),
    contentByHash: database.prepare<[string], Id>('SELECT id FROM content WHERE hash = ?'),
    addContent: database.prepare<[string, number]>('INSERT INTO content (hash, size) VALUES (?, ?)'),
    dropContent: database.prepare<[number]>('DELETE FROM content WHERE id = ?'),
    addContentBlock: database.prepare<[number, number, number]>(
      'INSERT INTO content_block (content, position, block) VALUES (?, ?, ?)',
    ),
    dropContentBlocks: database.prepare<[number]>('DELETE FROM content_block WHERE content = ?'),
    blocksOf: database.prepare<[number, number, number], BlockRow>(
      `SELECT ${BLOCK_COLUMNS} FROM content_block JOIN block ON block.id = content_block.block
       WHERE content = ? AND position >= ? ORDER BY position LIMIT ?`,
    ),
    references: database.prepare<[after: number, limit: number], Id & { isReferenced: number }>(
      `SELECT id, EXISTS (SELECT 1 FROM holding WHERE content = content.id)
         OR EXISTS (SELECT 1 FROM revision WHERE content = content.id) AS isReferenced
       FROM content WHERE id > ? ORDER BY id LIMIT ?`,
    ),
    // Also by a revision that is not counted: a wrong count, which `check` mends, must not cost a content.
    isReferenced: database.prepare<[number, number]>(
      `SELECT 1 FROM holding WHERE content = ? UNION ALL SELECT 1 FROM revision WHERE content = ? LIMIT 1`,
    ),
    addRevision: database.prepare<[number, number]>(
      'UPDATE holding SET revisions = revisions + 1 WHERE ns = ? AND content = ?',
    ),
    addHolding: database.prepare<[number, number]>(
      'INSERT INTO holding (ns, content, revisions) VALUES (?, ?, 1)',
    ),
    dropRevision: database.prepare<[number, number], { revisions: number }>(
      'UPDATE holding SET revisions = revisions - 1 WHERE ns = ? AND content = ? RETURNING revisions',
    ),
    addFiles: database.prepare<[{ ns: number; content: number; files: number }], { files: number }>(
      'UPDATE holding SET files = files + @files WHERE ns = @ns AND content = @content RETURNING files',
    ),
    dropHolding: database.prepare<[number, number]>('DELETE FROM holding WHERE ns = ? AND content = ?'),
    charge: database.prepare<[{ ns: number; content: number }]>(
      `UPDATE namespace SET used_bytes = used_bytes + (SELECT size FROM content WHERE id = @content)
       WHERE id = @ns AND used_bytes + (SELECT size FROM content WHERE id = @content) <= limit_bytes`,
    ),
    refund: database.prepare<[{ ns: number; content: number }]>(
      `UPDATE namespace SET used_bytes = used_bytes - (SELECT size FROM content WHERE id = @content)
       WHERE id = @ns`,
    ),
  };
}
