import { BLOCK_BYTES, ContentHasher } from '../../../util/content-hash.ts';
import { asRefusal } from '../errors.ts';
import { type Incoming, StorageError } from '../storage.ts';
import type { BlockStore } from './block-store.ts';
import { BlockWriter, type StagedBlock } from './block-writer.ts';

/** Complete, durable bytes that no transaction has committed yet. Pinned until `release`. */
export interface Staged {
  readonly blocks: readonly StagedBlock[];
  readonly sizeBytes: number;
  /** Content hash of these bytes alone. */
  readonly contentHash: string;
}

/** Blocks of one stream that may be on their way to their place while the next one arrives. */
const KEEPING_MAX = 4;

/**
 * Stages a body block by block, with a few MiB of memory whatever its size. Blocks end at multiples of 4 MiB counted
 * from `offset` before the first byte. Throws `body/…`, `insufficient_space`, or the error of the body, and then keeps
 * nothing.
 */
export async function stage(store: BlockStore, body: Incoming, offset = 0): Promise<Staged> {
  const staging = new Staging(store, offset);
  // For a body that begins at a block boundary, the content hash follows from the blocks' hashes.
  const hasher = offset % BLOCK_BYTES === 0 ? undefined : new ContentHasher();
  try {
    for await (const chunk of body.bytes) {
      hasher?.update(chunk);
      await staging.add(chunk);
      if (staging.sizeBytes > body.bytesMax)
        throw new StorageError({ kind: 'body', tag: 'payload_too_large' });
    }
    const blocks = await staging.finish();
    const contentHash = hasher?.digest() ?? hashOfBlocks(blocks);
    if (body.contentHash !== undefined && body.contentHash.toLowerCase() !== contentHash)
      throw new StorageError({ kind: 'body', tag: 'content_hash_mismatch' });
    return { blocks, sizeBytes: staging.sizeBytes, contentHash };
  } catch (failure) {
    await staging.abandon();
    throw asRefusal(failure);
  }
}

/** Returns the content hash of consecutive whole blocks. */
export function hashOfBlocks(blocks: readonly { readonly hash: Uint8Array }[]): string {
  const hasher = new ContentHasher();
  for (const block of blocks) hasher.addBlock(block.hash);
  return hasher.digest();
}

/** Unpins staged blocks, and removes those of the block store that no transaction has committed. */
export async function release(store: BlockStore, blocks: readonly StagedBlock[]): Promise<void> {
  const names = new Set<string>();
  for (const block of blocks) {
    if (block.bytes) continue;
    store.unpin(block.hash);
    names.add(block.name);
  }
  for (const name of names) await store.discard(name);
}

class Staging {
  readonly #blocks: StagedBlock[] = [];
  readonly #keeping = new Set<Promise<void>>();
  #writer: BlockWriter | undefined;
  #failure: unknown;
  #hasKept = false;
  sizeBytes = 0;

  constructor(
    private readonly store: BlockStore,
    private readonly offset: number,
  ) {}

  /** Adds a chunk; resolves when there is room for the next. */
  async add(chunk: Uint8Array): Promise<void> {
    for (let taken = 0; taken < chunk.length; ) {
      this.#writer ??= new BlockWriter(this.store);
      const room = BLOCK_BYTES - ((this.offset + this.sizeBytes) % BLOCK_BYTES);
      const piece = chunk.subarray(taken, taken + room);
      await this.#writer.add(piece);
      taken += piece.length;
      this.sizeBytes += piece.length;
      if (piece.length === room) await this.#closeBlock();
    }
  }

  /** Returns all blocks when they are durable. */
  async finish(): Promise<readonly StagedBlock[]> {
    if (this.#writer) await this.#closeBlock();
    await Promise.all(this.#keeping);
    if (this.#failure) throw this.#failure;
    if (this.#hasKept) await this.store.sync();
    return this.#blocks;
  }

  /** Discards all bytes received so far. */
  async abandon(): Promise<void> {
    await this.#writer?.abandon();
    await Promise.all(this.#keeping);
    await release(this.store, this.#blocks);
  }

  /** Sends a full block on its way to its place; the next one may arrive meanwhile. */
  async #closeBlock(): Promise<void> {
    const finished = this.#writer?.finish();
    this.#writer = undefined;
    if (!finished) return;
    this.#blocks.push(finished.block);
    if (finished.block.bytes) return;
    this.#hasKept = true;
    const keeping: Promise<void> = finished.kept
      .catch((failure: unknown) => {
        this.#failure ??= failure;
      })
      .finally(() => this.#keeping.delete(keeping));
    this.#keeping.add(keeping);
    if (this.#keeping.size >= KEEPING_MAX) await Promise.race(this.#keeping);
    if (this.#failure) throw this.#failure;
  }
}
