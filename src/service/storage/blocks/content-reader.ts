import { BLOCK_BYTES } from '../../../util/content-hash.ts';
import type { ByteRange } from '../../../util/ranges.ts';
import { DamagedBlockError } from '../errors.ts';
import type { BlockBuffers } from './block-buffers.ts';
import { type BlockFiles, verified } from './blocks.ts';
import type { BlockRow, Contents } from './contents.ts';

/** Block rows looked up at once; the complete list of a long file would take much memory. */
const ROWS = 64;

/** The sources of content. */
export interface ReadingParts {
  readonly files: Pick<BlockFiles, 'read'>;
  readonly contents: Pick<Contents, 'blocksOf' | 'bytesOf'>;
  /** Present if each chunk is needed only until the next one is requested. */
  readonly buffers: BlockBuffers | undefined;
}

/** Returns the verified bytes of one block, those of a file in `into` if given. Throws `DamagedBlockError`. */
export async function readBlock(
  files: Pick<BlockFiles, 'read'>,
  contents: Pick<Contents, 'bytesOf'>,
  block: BlockRow,
  into?: Buffer,
): Promise<Buffer> {
  if (!block.inline) return await files.read(block, into);
  const bytes = contents.bytesOf(block.id);
  if (!bytes) throw new DamagedBlockError(block.hash.toString('hex'), 'its bytes are not in the database');
  return verified(block, bytes);
}

/**
 * Yields the bytes of `range` of a content. Reads the next block while the caller processes the last one, unless others
 * use the buffers.
 */
export async function* readContent(
  parts: ReadingParts,
  content: number,
  range: ByteRange,
): AsyncGenerator<Uint8Array, void, undefined> {
  const blocks = blocksIn(parts.contents, content, range);
  let next = startReading(parts, blocks);
  let current: Reading | undefined;
  try {
    for (let position = Math.floor(range.start / BLOCK_BYTES); next; position++) {
      current = next;
      const bytes = await current.bytes;
      next = parts.buffers?.isBusy ? undefined : startReading(parts, blocks);
      const before = position * BLOCK_BYTES;
      yield bytes.subarray(Math.max(0, range.start - before), range.end - before);
      current.release();
      current = undefined;
      next ??= startReading(parts, blocks);
    }
  } finally {
    current?.release();
    await next?.bytes.catch(() => undefined);
    next?.release();
  }
}

interface Reading {
  readonly bytes: Promise<Buffer>;
  /** Releases the buffer; called when the bytes have been read and are no longer needed. */
  readonly release: () => void;
}

/** Begins to read the next block, if there is one. */
function startReading(
  { files, contents, buffers }: ReadingParts,
  blocks: Iterator<BlockRow>,
): Reading | undefined {
  const { value, done } = blocks.next();
  if (done) return undefined;
  const buffer = value.inline ? undefined : buffers?.take();
  const bytes = readBlock(files, contents, value, buffer);
  // The rejection is handled when the caller awaits `bytes`; until then it must not count as unhandled.
  bytes.catch(() => undefined);
  return { bytes, release: () => buffer && buffers?.giveBack(buffer) };
}

/** Yields the blocks that contain the bytes of `range`, looked up on demand. */
function* blocksIn(
  contents: Pick<Contents, 'blocksOf'>,
  content: number,
  range: ByteRange,
): Generator<BlockRow, void, undefined> {
  const last = Math.floor((range.end - 1) / BLOCK_BYTES);
  for (let position = Math.floor(range.start / BLOCK_BYTES); position <= last; ) {
    const rows = contents.blocksOf(content, position, Math.min(ROWS, last - position + 1));
    if (rows.length === 0) throw new DamagedBlockError(`list of content ${content}`, 'it ends too early');
    yield* rows;
    position += rows.length;
  }
}
