import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Transaction } from '../committer.ts';
import { insufficientSpace } from '../errors.ts';
import type { StagedBlock } from './blocks.ts';
import { hashOfBlocks } from './staging.ts';

/** A block as the database knows it. */
export interface BlockRow {
  readonly id: number;
  readonly hash: Buffer;
  readonly sizeBytes: number;
  readonly inline: number;
}

/**
 * Contents and their blocks, counted: a content lives as long as some revision holds it or some reader
 * reads it, a block as long as some content or upload session needs it. Call only inside a transaction
 * what changes something.
 */
export class Contents {
  readonly #sql: ReturnType<typeof statements>;
  /** Contents being read: they stay until the reader is done, as an open file would. */
  readonly #readers = new Map<number, number>();

  constructor(database: SqliteDatabase) {
    this.#sql = statements(database);
  }

  /** The block with these bytes, if there is one. */
  block(hash: Buffer): BlockRow | undefined {
    return this.#sql.blockByHash.get(hash);
  }

  /** The row of a staged block, new or not. */
  keepBlock(block: StagedBlock): number {
    const known = this.block(block.hash);
    if (known) return known.id;
    const id = Number(
      this.#sql.addBlock.run(block.hash, block.sizeBytes, block.bytes ? 1 : 0).lastInsertRowid,
    );
    if (block.bytes) this.#sql.addBytes.run(id, block.bytes);
    return id;
  }

  /** The content made of these blocks, new or not. */
  keep(blocks: readonly StagedBlock[]): number {
    const hash = hashOfBlocks(blocks);
    const known = this.#sql.contentByHash.get(hash);
    if (known) return known.id;
    const sizeBytes = blocks.reduce((sum, block) => sum + block.sizeBytes, 0);
    const id = Number(this.#sql.addContent.run(hash, sizeBytes).lastInsertRowid);
    blocks.forEach((block, position) => {
      this.#sql.addContentBlock.run(id, position, this.keepBlock(block));
    });
    return id;
  }

  /** One more revision of `ns` has this content. Throws `insufficient_space` beyond the limit. */
  hold(ns: number, content: number): void {
    if (this.#sql.holdAgain.run(ns, content).changes > 0) return;
    this.#sql.hold.run(ns, content);
    if (this.#sql.charge.run({ ns, content }).changes === 0) throw insufficientSpace();
  }

  /** One more file of `ns` has this content. The first one is paid for with its revision. Throws `insufficient_space`. */
  addFile(ns: number, content: number): void {
    const files = this.#sql.addFiles.get({ ns, content, files: 1 })?.files ?? 0;
    if (files > 1 && this.#sql.charge.run({ ns, content }).changes === 0) throw insufficientSpace();
  }

  /** One file less has it; its history still does. */
  dropFile(ns: number, content: number): void {
    const files = this.#sql.addFiles.get({ ns, content, files: -1 })?.files ?? 0;
    if (files > 0) this.#sql.refund.run({ ns, content });
  }

  /** One revision less has it; what nothing needs any more goes away. */
  letGo(transaction: Transaction, ns: number, content: number): void {
    const left = this.#sql.letGo.get(ns, content);
    if (!left || left.revisions > 0) return;
    this.#sql.dropHolding.run(ns, content);
    this.#sql.refund.run({ ns, content });
    this.collect(transaction, content);
  }

  /** Removes the content if nothing holds or reads it. */
  collect(transaction: Transaction, content: number): void {
    if (this.#readers.has(content) || this.#sql.isHeld.get(content)) return;
    const blocks = this.#sql.blocksOf.all(content, 0, -1);
    this.#sql.dropContentBlocks.run(content);
    this.#sql.dropContent.run(content);
    for (const block of blocks) this.collectBlock(transaction, block);
  }

  /** Removes the block if no content and no session needs it. */
  collectBlock(transaction: Transaction, block: BlockRow): void {
    if (this.#sql.isNeeded.get(block.id, block.id)) return;
    if (block.inline) this.#sql.dropBytes.run(block.id);
    else transaction.orphans.push(block.hash.toString('hex'));
    this.#sql.dropBlock.run(block.id);
  }

  /**
   * Of the next `count` contents after number `after`, those that no revision holds: a crash left them while they
   * were read. `last` is where to go on, if there are more.
   */
  unheld(after: number, count: number): { readonly unheld: number[]; readonly last: number | undefined } {
    const looked = this.#sql.heldOrNot.all(after, count);
    return {
      unheld: looked.filter(({ held }) => !held).map(({ id }) => id),
      last: looked.length < count ? undefined : looked.at(-1)?.id,
    };
  }

  /** Up to `count` blocks of a content, in order. */
  blocksOf(content: number, from: number, count: number): BlockRow[] {
    return this.#sql.blocksOf.all(content, from, count);
  }

  /** The bytes of a block that lives in the database. */
  bytesOf(block: number): Buffer | undefined {
    return this.#sql.bytesOf.get(block)?.bytes;
  }

  /** A content that is read stays until `stopReading`, whatever is removed. */
  startReading(content: number): void {
    this.#readers.set(content, (this.#readers.get(content) ?? 0) + 1);
  }

  /** Whether something is being read. */
  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** Whether that was the last reader of a content that nothing holds any more: then collect it. */
  stopReading(content: number): boolean {
    const left = (this.#readers.get(content) ?? 1) - 1;
    if (left > 0) this.#readers.set(content, left);
    else this.#readers.delete(content);
    return left <= 0 && this.#sql.isHeld.get(content) === undefined;
  }
}

const BLOCK_COLUMNS = 'block.id, block.hash, block.size AS sizeBytes, block.inline';

/** Prepared statements over blocks, contents and who holds them. */
function statements(database: SqliteDatabase) {
  type Id = { id: number };
  return {
    blockByHash: database.prepare<[Buffer], BlockRow>(`SELECT ${BLOCK_COLUMNS} FROM block WHERE hash = ?`),
    addBlock: database.prepare<[Buffer, number, number]>(
      'INSERT INTO block (hash, size, inline) VALUES (?, ?, ?)',
    ),
    addBytes: database.prepare<[number, Buffer]>('INSERT INTO block_bytes (block, bytes) VALUES (?, ?)'),
    dropBlock: database.prepare<[number]>('DELETE FROM block WHERE id = ?'),
    dropBytes: database.prepare<[number]>('DELETE FROM block_bytes WHERE block = ?'),
    bytesOf: database.prepare<[number], { bytes: Buffer }>('SELECT bytes FROM block_bytes WHERE block = ?'),
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
    heldOrNot: database.prepare<[after: number, limit: number], Id & { held: number }>(
      `SELECT id, EXISTS (SELECT 1 FROM holding WHERE content = content.id) AS held
       FROM content WHERE id > ? ORDER BY id LIMIT ?`,
    ),
    isHeld: database.prepare<[number]>('SELECT 1 FROM holding WHERE content = ? LIMIT 1'),
    holdAgain: database.prepare<[number, number]>(
      'UPDATE holding SET revisions = revisions + 1 WHERE ns = ? AND content = ?',
    ),
    hold: database.prepare<[number, number]>('INSERT INTO holding (ns, content, revisions) VALUES (?, ?, 1)'),
    letGo: database.prepare<[number, number], { revisions: number }>(
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
