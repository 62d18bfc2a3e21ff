import { createHash } from 'node:crypto';
import type { BlockStore } from './block-store.ts';
import type { IncomingFile } from './incoming-files.ts';
import { PieceChecksums } from './piece-checksums.ts';

/**
 * Maximum size of a block in SQLite, in bytes. Many small blocks share one fsync of its log; larger ones are files,
 * because SQLite would write them twice (log and main file).
 */
const INLINE_BYTES_MAX = 64 * 1024;

/** Bytes gathered before a write to a file: one system call for many network chunks. */
const FLUSH_BYTES = 1024 * 1024;

/** Chunks gathered before they are written or joined, which limits the heap that a slow sender's tiny chunks take. */
const FLUSH_CHUNKS = 512;

/** A block that survives a crash after the next `sync`, or whose bytes are in memory. */
export type StagedBlock = SmallBlock | KeptBlock;

/** A block for SQLite. */
interface SmallBlock {
  readonly hash: Buffer;
  readonly sizeBytes: number;
  readonly bytes: Buffer;
}

/** A block in the block store. */
interface KeptBlock {
  readonly hash: Buffer;
  readonly sizeBytes: number;
  readonly bytes?: undefined;
  readonly name: string;
  /** The checksums of its pieces; absent for a block that has a row already. */
  readonly pieces?: Buffer;
}

/** Writes one block while its bytes arrive. */
export class BlockWriter {
  readonly #hash = createHash('sha256');
  readonly #pieces = new PieceChecksums();
  #chunks: Uint8Array[] = [];
  #gatheredBytes = 0;
  #incoming: IncomingFile | undefined;
  sizeBytes = 0;

  constructor(private readonly store: BlockStore) {}

  /** Adds bytes. Keeps a reference to `chunk`, which must not change afterwards. */
  async add(chunk: Uint8Array): Promise<void> {
    this.#hash.update(chunk);
    this.#pieces.add(chunk);
    this.#chunks.push(chunk);
    this.#gatheredBytes += chunk.length;
    this.sizeBytes += chunk.length;
    if (this.#gatheredBytes >= FLUSH_BYTES) await this.#flush();
    else if (this.#chunks.length >= FLUSH_CHUNKS) {
      if (this.sizeBytes > INLINE_BYTES_MAX) await this.#flush();
      else this.#chunks = [Buffer.concat(this.#chunks)];
    }
  }

  /** Returns the staged block, pinned if the block store has it. `kept` resolves when it is in its place. */
  finish(): { readonly block: StagedBlock; readonly kept: Promise<void> } {
    const hash = this.#hash.digest();
    const { sizeBytes } = this;
    if (sizeBytes <= INLINE_BYTES_MAX)
      return { block: { hash, sizeBytes, bytes: Buffer.concat(this.#chunks) }, kept: Promise.resolve() };
    const name = this.store.pin(hash);
    return {
      block: { hash, sizeBytes, name, pieces: this.#pieces.finish() },
      kept: this.#keep({ hash, sizeBytes }),
    };
  }

  /** Discards the written bytes. */
  async abandon(): Promise<void> {
    if (this.#incoming) await this.store.dropIncoming(this.#incoming);
  }

  /** Writes the rest of the bytes and gives the file to the block store; removes it on failure. */
  async #keep(block: { readonly hash: Buffer; readonly sizeBytes: number }): Promise<void> {
    try {
      await this.#flush();
    } catch (failure) {
      await this.abandon();
      throw failure;
    }
    if (this.#incoming) await this.store.keep(block, this.#incoming);
  }

  /** Writes the gathered bytes to the file. Never called for a block that stays small. */
  async #flush(): Promise<void> {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#gatheredBytes = 0;
    this.#incoming ??= await this.store.createIncoming();
    await this.#incoming.file.append(chunks);
  }
}
