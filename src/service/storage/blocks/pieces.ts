import { ContentHasher } from '../../../util/content-hash.ts';
import { type Incoming, type SessionPiece, StorageError } from '../storage.ts';
import type { BlockStore } from './block-store.ts';
import { release, type Staged, stage } from './staging.ts';

/**
 * Stages a body that consists of several pieces, each for its own session. Throws `body/…`, and keeps nothing, if its
 * length or hash is wrong.
 */
export async function stagePieces(
  store: BlockStore,
  pieces: readonly SessionPiece[],
  { bytes, bytesMax, contentHash }: Incoming,
): Promise<Staged[]> {
  if (pieces.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) > bytesMax)
    throw refused('payload_too_large');
  const hasher = new ContentHasher();
  const source = new Source(bytes, hasher);
  const staged: Staged[] = [];
  try {
    for (const { sizeBytes, offset } of pieces)
      staged.push(await stage(store, { bytes: source.take(sizeBytes), bytesMax: sizeBytes }, offset));
    if (!(await source.isAtEnd())) throw refused('length_mismatch');
    if (contentHash !== undefined && contentHash.toLowerCase() !== hasher.digest())
      throw refused('content_hash_mismatch');
    return staged;
  } catch (failure) {
    for (const { blocks } of staged) await release(store, blocks);
    throw failure;
  } finally {
    await source.close();
  }
}

/** A stream that is read in portions of a given length. */
class Source {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #rest: Uint8Array | undefined;

  constructor(
    bytes: AsyncIterable<Uint8Array>,
    private readonly hasher: ContentHasher,
  ) {
    this.#iterator = bytes[Symbol.asyncIterator]();
  }

  /** Yields the next `sizeBytes` bytes. Throws `length_mismatch` when there are fewer. */
  async *take(sizeBytes: number): AsyncGenerator<Uint8Array> {
    for (let leftBytes = sizeBytes; leftBytes > 0; ) {
      const chunk = await this.#next();
      if (!chunk) throw refused('length_mismatch');
      const taken = chunk.subarray(0, leftBytes);
      this.#rest = chunk.subarray(taken.length);
      leftBytes -= taken.length;
      this.hasher.update(taken);
      yield taken;
    }
  }

  async isAtEnd(): Promise<boolean> {
    return (await this.#next()) === undefined;
  }

  async close(): Promise<void> {
    await this.#iterator.return?.();
  }

  /** Returns the next bytes, at least one; `undefined` at the end. */
  async #next(): Promise<Uint8Array | undefined> {
    while (!this.#rest?.length) {
      const next = await this.#iterator.next();
      if (next.done) return undefined;
      this.#rest = next.value;
    }
    return this.#rest;
  }
}

function refused(tag: 'payload_too_large' | 'content_hash_mismatch' | 'length_mismatch'): StorageError {
  return new StorageError({ kind: 'body', tag });
}
