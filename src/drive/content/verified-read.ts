import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import { FileError } from '../errors.ts';
import type { BlockCache } from './block-cache.ts';
import type { BlockSource } from './block-source.ts';
import { blockCount, blockKey, rangeOfBlock } from './blocks.ts';
import type { CachedContentCheck } from './cached-content-check.ts';
import { type Upstream, upstreamBytes } from './resuming-download.ts';

/** The largest cached file that is checked before it is read. */
const CHECKED_FIRST_BYTES_MAX = 64 * 1024 * 1024;

/** What whole reads draw from. */
export interface WholeSources {
  readonly upstream: Upstream;
  readonly cache: BlockCache;
  readonly blocks: BlockSource;
  readonly check: CachedContentCheck;
}

/**
 * All bytes of `file`. The last of them are given out only when the content hash of all is right; otherwise it
 * throws `FileError` `broken`. A last block that was damaged on its way is fetched again; of one before it the client has
 * the wrong bytes already when the hash tells, so that only a read from the beginning can be right. To hold back more
 * than the last block would keep the client waiting for the whole download.
 */
export function readWhole(
  sources: WholeSources,
  file: FileEntry,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  return file.sizeBytes <= BLOCK_BYTES ? readShort(sources, file, signal) : readLong(sources, file, signal);
}

/** A file of one block is given out when all of it is there, so that a damaged download can be tried again. */
async function* readShort(
  { upstream, blocks }: WholeSources,
  file: FileEntry,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (file.sizeBytes === 0) return;
  const all = { start: 0, end: file.sizeBytes };
  let chunks: Uint8Array[];
  try {
    chunks = await collect(blocks.read(file, all, signal));
  } catch (failure) {
    if (!(failure instanceof FileError && failure.fault === 'broken')) throw failure;
    upstream.log.warn('a download was damaged and is tried again', { rev: file.rev });
    chunks = await collect(blocks.read(file, all, signal));
  }
  yield* chunks;
}

async function* readLong(
  sources: WholeSources,
  file: FileEntry,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  // What is all in the cache is checked before its first byte is given out.
  if (file.sizeBytes <= CHECKED_FIRST_BYTES_MAX) await sources.check.start(file);
  const check = new WholeCheck(file);
  const count = blockCount(file.sizeBytes);
  const lastBlockStart = rangeOfBlock(file, count - 1).start;
  const all = { start: 0, end: file.sizeBytes };
  const held: Uint8Array[] = [];
  let position = 0;
  for await (const chunk of sources.blocks.read(file, all, signal, true)) {
    check.add(chunk);
    const free = check.isPossible ? Math.max(0, lastBlockStart - position) : chunk.length;
    position += chunk.length;
    if (free >= chunk.length) {
      yield chunk;
      continue;
    }
    if (free > 0) yield chunk.subarray(0, free);
    held.push(chunk.subarray(free));
  }
  const isRight = !check.isPossible || check.isRight();
  if (!isRight) return yield* await mended(sources, file, check, signal);
  if (check.isPossible) sources.check.passed(file);
  yield* held;
}

/** The right last block of a read whose hash is wrong: it is the only one that was not given out yet. */
async function mended(
  { upstream, cache }: WholeSources,
  file: FileEntry,
  check: WholeCheck,
  signal: AbortSignal,
): Promise<readonly Uint8Array[]> {
  upstream.log.warn('a download was damaged', { rev: file.rev, blocks: check.blockCount });
  for (let index = 0; index < check.blockCount; index++) cache.forget(blockKey(file, index));
  const last = rangeOfBlock(file, check.blockCount - 1);
  const chunks = await collect(upstreamBytes(upstream, file, last, signal));
  if (check.isRightWith(chunks)) return chunks;
  upstream.log.error('the service sends other bytes than the content hash stands for', { rev: file.rev });
  throw new FileError('broken', `${file.name} was damaged on its way from the service: read it again`);
}

/** The content hash of what was read, and of what it would be with another last block. */
class WholeCheck {
  readonly #blocks: Buffer[] = [];
  readonly #hasher = new ContentHasher((sha256) => this.#blocks.push(sha256));

  constructor(private readonly file: FileEntry) {}

  /** The service need not tell a file's hash. */
  get isPossible(): boolean {
    return this.file.contentHash !== undefined;
  }

  get blockCount(): number {
    return this.#blocks.length;
  }

  add(chunk: Uint8Array): void {
    if (this.isPossible) this.#hasher.update(chunk);
  }

  /** Ends the check. */
  isRight(): boolean {
    return this.#hasher.digest() === this.file.contentHash;
  }

  isRightWith(lastBlock: readonly Uint8Array[]): boolean {
    const hasher = new ContentHasher();
    for (const sha256 of this.#blocks.slice(0, -1)) hasher.addBlock(sha256);
    for (const chunk of lastBlock) hasher.update(chunk);
    return hasher.digest() === this.file.contentHash;
  }
}

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return chunks;
}
