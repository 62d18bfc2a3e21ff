import type { FileEntry } from '../../api/remote.ts';
import { onAbort } from '../../util/abort.ts';
import { readAll } from '../../util/byte-source.ts';
import { BLOCK_BYTES, ContentHasher } from '../../util/content-hash.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { FileError } from '../errors.ts';
import type { BlockCache } from './block-cache.ts';
import { BlockSource } from './block-source.ts';
import { blockAt, blockCount, blockKey, rangeOfBlock } from './blocks.ts';
import { CachedContentCheck, type WholeRead } from './cached-content-check.ts';
import { type DownloadDeps, ResumingDownload } from './resuming-download.ts';

/** Maximum size of a cached file that is checked before it is read, in bytes. */
const CHECKED_FIRST_BYTES_MAX = 64 * 1024 * 1024;

/** Reads the content of files, from the block cache and from the service. */
export interface ContentReader {
  /**
   * Reads exactly this revision: `range`, or the whole file without one. Each piece is valid until the next one is
   * asked for. The bytes end early only by throwing, and those of a whole file end only if they have the file's content
   * hash. When the iteration is ended or `signal` is aborted, the download is aborted at once, unless another reader
   * needs the same block. Throws `ApiError`, `FileError` `broken`, or the signal's reason.
   */
  read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Returns all of a short file whose bytes are in memory, and have its content hash. */
  inMemory(file: FileEntry): Uint8Array | undefined;
}

export function createContentReader({
  cache,
  ...deps
}: DownloadDeps & { readonly cache: BlockCache }): ContentReader {
  const check = new CachedContentCheck(cache, deps.clock, deps.log);
  const blocks = new BlockSource(deps, cache, check);
  const sources = { deps, cache, blocks, check };
  return {
    inMemory(file) {
      // With a content hash, only a block that has it enters the cache.
      const isShort = file.sizeBytes <= BLOCK_BYTES && file.contentHash !== undefined;
      return isShort ? cache.inMemory(blockKey(file, 0)) : undefined;
    },
    read(file, range, signal) {
      const { start, end } = range ?? { start: 0, end: file.sizeBytes };
      const isWhole = start === 0 && end >= file.sizeBytes;
      return abortable(signal, (life) =>
        isWhole
          ? readWhole(sources, file, life)
          : blocks.read(file, { start, end: Math.min(end, file.sizeBytes) }, life),
      );
    },
  };
}

/**
 * Makes an iteration that ends at once when it is left or `signal` aborts: a generator alone would first wait for its
 * current step, and that step for the service.
 */
function abortable(
  signal: AbortSignal,
  start: (signal: AbortSignal) => AsyncGenerator<Uint8Array, void, undefined>,
): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      const life = new AbortController();
      const bytes = start(life.signal);
      const end = (reason: unknown) => {
        life.abort(reason);
        // Also ends a generator that is between two steps and may never be resumed.
        return bytes.return();
      };
      const removeListener = onAbort(signal, (reason) => void end(reason).catch(() => {}));
      return {
        async next() {
          let step: IteratorResult<Uint8Array, void> | undefined;
          try {
            step = await bytes.next();
          } finally {
            if (step?.done !== false) removeListener();
          }
          // An aborted iteration must not look like the end of the bytes.
          if (step.done) life.signal.throwIfAborted();
          return step;
        },
        async return() {
          removeListener();
          await end(new Error('the reader went away'));
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** The sources of whole files. */
interface WholeFileSources {
  readonly deps: DownloadDeps;
  readonly cache: BlockCache;
  readonly blocks: BlockSource;
  readonly check: CachedContentCheck;
}

/**
 * Reads all of `file`, and yields the last block only when the content hash of the file is right; otherwise throws
 * `FileError` `broken`. A damaged last block is downloaded again. When an earlier block is damaged, the client already
 * has its bytes, and only a new read can succeed: withholding more than the last block would make the client wait for
 * the whole download.
 */
function readWhole(
  sources: WholeFileSources,
  file: FileEntry,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  return file.sizeBytes <= BLOCK_BYTES ? readShort(sources, file, signal) : readLong(sources, file, signal);
}

/** Yields a file of one block only when it is complete, so that a damaged download can be repeated. */
async function* readShort(
  { deps, cache, blocks }: WholeFileSources,
  file: FileEntry,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (file.sizeBytes === 0) return;
  // With a content hash, only a block that has it enters the cache.
  const cached = file.contentHash && (await cache.read(blockKey(file, 0), 0, file.sizeBytes));
  if (cached && cached.length === file.sizeBytes) return yield cached;
  let chunks: Uint8Array[];
  try {
    chunks = await collect(blocks.read(file, allOf(file), signal));
  } catch (failure) {
    if (!(failure instanceof FileError && failure.fault === 'broken')) throw failure;
    deps.log.warn('a download was damaged and is repeated', { rev: file.rev });
    chunks = await collect(blocks.read(file, allOf(file), signal));
  }
  yield* chunks;
}

async function* readLong(
  sources: WholeFileSources,
  file: FileEntry,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  // A completely cached file is checked before its first byte is sent.
  if (file.sizeBytes <= CHECKED_FIRST_BYTES_MAX) await sources.check.start(file);
  // Its blocks were checked when they arrived, and those that are missing will be.
  if (sources.check.isProved(file)) return yield* sources.blocks.read(file, allOf(file), signal, true);
  const read = sources.check.beginWhole(file);
  try {
    yield* readUnproved(sources, file, read, signal);
  } finally {
    sources.check.endWhole(read);
  }
}

async function* readUnproved(
  sources: WholeFileSources,
  file: FileEntry,
  read: WholeRead,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const check = new WholeCheck(file);
  const count = blockCount(file.sizeBytes);
  const lastBlockStart = rangeOfBlock(file, count - 1).start;
  const withheld: Uint8Array[] = [];
  let position = 0;
  for await (const chunk of sources.blocks.read(file, allOf(file), signal, true)) {
    check.add(chunk);
    const free = check.isPossible ? Math.max(0, lastBlockStart - position) : chunk.length;
    position += chunk.length;
    read.index = blockAt(position);
    if (free >= chunk.length) {
      yield chunk;
      continue;
    }
    if (free > 0) yield chunk.subarray(0, free);
    withheld.push(Buffer.from(chunk.subarray(free)));
  }
  const isRight = !check.isPossible || check.isRight();
  if (!isRight) return yield* await repairedLastBlock(sources, file, check, signal);
  if (check.isPossible) sources.check.passed(file, check.digests, read.missed);
  yield* withheld;
}

/** Downloads the last block again, the only one that was not sent yet, and returns it if the hash is right with it. */
async function repairedLastBlock(
  { deps, cache }: WholeFileSources,
  file: FileEntry,
  check: WholeCheck,
  signal: AbortSignal,
): Promise<readonly Uint8Array[]> {
  deps.log.warn('a download was damaged', { rev: file.rev, blocks: check.blockCount });
  for (let index = 0; index < check.blockCount; index++) cache.forget(blockKey(file, index));
  const last = rangeOfBlock(file, check.blockCount - 1);
  const bytes = await readAll(new ResumingDownload(deps, file, last, signal), last.end - last.start);
  if (check.isRightWith([bytes])) return [bytes];
  deps.log.error('a file from the service does not have its content hash, even after a second download', {
    rev: file.rev,
  });
  throw new FileError('broken', `${file.name} was damaged on its way from the service; read it again`);
}

/** Computes the content hash of the bytes read, and what it would be with another last block. */
class WholeCheck {
  /** The SHA-256 of each block. */
  readonly digests: Buffer[] = [];
  readonly #hasher = new ContentHasher((sha256) => this.digests.push(sha256));

  constructor(private readonly file: FileEntry) {}

  /** Whether the service gives a hash of the file. */
  get isPossible(): boolean {
    return this.file.contentHash !== undefined;
  }

  get blockCount(): number {
    return this.digests.length;
  }

  add(chunk: Uint8Array): void {
    if (this.isPossible) this.#hasher.update(chunk);
  }

  /** Returns whether the bytes are right. Must be called once, after all bytes were added. */
  isRight(): boolean {
    return this.#hasher.digest() === this.file.contentHash;
  }

  isRightWith(lastBlock: readonly Uint8Array[]): boolean {
    const hasher = new ContentHasher();
    for (const sha256 of this.digests.slice(0, -1)) hasher.addBlock(sha256);
    for (const chunk of lastBlock) hasher.update(chunk);
    return hasher.digest() === this.file.contentHash;
  }
}

function allOf({ sizeBytes }: FileEntry): ByteRange {
  return { start: 0, end: sizeBytes };
}

/** Copies the pieces of `bytes`, which are valid only until the next one. */
async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(Buffer.from(chunk));
  return chunks;
}
