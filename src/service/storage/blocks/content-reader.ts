import { BLOCK_BYTES } from '../../../util/content-hash.ts';
import type { ByteRange } from '../../../util/ranges.ts';
import { DamagedBlockError } from '../errors.ts';
import type { BlockBuffers } from './block-buffers.ts';
import { type BlockStore, verified } from './block-store.ts';
import type { BlockRow, Contents } from './contents.ts';

/** Block rows looked up at once; the complete list of a long file would take much memory. */
const ROWS = 64;

/** Maximum size of a part of a block that is read without the rest of the block, in bytes. */
const SHORT_BYTES_MAX = 1024 * 1024;

/** The sources of content. */
export interface ReadingDeps {
  readonly blocks: Pick<BlockStore, 'read' | 'readPart'>;
  readonly contents: Pick<Contents, 'blocksOf' | 'bytesOf' | 'isShared' | 'piecesOf'>;
  /** Present if each chunk is needed only until the next one is requested. */
  readonly buffers: BlockBuffers | undefined;
}

/** Returns the verified bytes of one block, those of the block store in `into` if given. Throws `DamagedBlockError`. */
export async function readBlock(
  blocks: Pick<BlockStore, 'read'>,
  contents: Pick<Contents, 'bytesOf'>,
  block: BlockRow,
  into?: Buffer,
): Promise<Buffer> {
  if (!block.inline) return await blocks.read(block, into);
  const bytes = await contents.bytesOf(block);
  if (!bytes) throw new DamagedBlockError(block.hash.toString('hex'), 'its bytes are not in the database');
  return verified(block, bytes);
}

/**
 * Yields the bytes of `range` of a content. Reads the next block while the caller processes the last one, unless others
 * use the buffers.
 */
export async function* readContent(
  deps: ReadingDeps,
  content: number,
  range: ByteRange,
): AsyncGenerator<Uint8Array, void, undefined> {
  const blocks = partsOfBlocks(deps.contents, content, range);
  let next = startReading(deps, blocks);
  let current: Reading | undefined;
  try {
    while (next) {
      current = next;
      // Each reading is released once, also if this one fails.
      next = undefined;
      const bytes = await current.bytes;
      next = deps.buffers?.isBusy ? undefined : startReading(deps, blocks);
      yield bytes;
      current.release();
      current = undefined;
      next ??= startReading(deps, blocks);
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

/** A block, and the part of it that is read. */
interface BlockPart {
  readonly block: BlockRow;
  readonly part: ByteRange;
}

/** Begins to read the next block, if there is one. */
function startReading(deps: ReadingDeps, blocks: Iterator<BlockPart>): Reading | undefined {
  const { value, done } = blocks.next();
  if (done) return undefined;
  const { block, part } = value;
  const partBytes = part.end - part.start;
  const isShort = !block.inline && partBytes < block.sizeBytes && partBytes <= SHORT_BYTES_MAX;
  const buffer = block.inline || isShort ? undefined : deps.buffers?.take();
  const bytes = isShort ? readShort(deps, value) : readWhole(deps, value, buffer);
  // The rejection is handled when the caller awaits `bytes`; until then it must not count as unhandled.
  bytes.catch(() => undefined);
  return { bytes, release: () => buffer && deps.buffers?.giveBack(buffer) };
}

async function readWhole(
  { blocks, contents }: ReadingDeps,
  { block, part }: BlockPart,
  into: Buffer | undefined,
): Promise<Buffer> {
  const bytes = await readBlock(blocks, contents, block, into);
  return bytes.subarray(part.start, part.end);
}

/** Reads no more of the block than needed, if its pieces have checksums. */
async function readShort(
  { blocks, contents, buffers }: ReadingDeps,
  { block, part }: BlockPart,
): Promise<Buffer> {
  const checksums = contents.piecesOf(block);
  if (checksums) return await blocks.readPart(block, part, checksums);
  const buffer = buffers?.take();
  try {
    const bytes = await readBlock(blocks, contents, block, buffer);
    return Buffer.from(bytes.subarray(part.start, part.end));
  } finally {
    if (buffer) buffers?.giveBack(buffer);
  }
}

/** Yields the blocks that contain the bytes of `range`, looked up on demand unless others may remove the list. */
function* partsOfBlocks(
  contents: Pick<Contents, 'blocksOf' | 'isShared'>,
  content: number,
  range: ByteRange,
): Generator<BlockPart, void, undefined> {
  const last = Math.floor((range.end - 1) / BLOCK_BYTES);
  for (let position = Math.floor(range.start / BLOCK_BYTES); position <= last; ) {
    const rowsMax = contents.isShared ? Number.POSITIVE_INFINITY : ROWS;
    const rows = contents.blocksOf(content, position, Math.min(rowsMax, last - position + 1));
    if (rows.length === 0) throw new DamagedBlockError(`list of content ${content}`, 'it ends too early');
    for (const block of rows) {
      const before = position * BLOCK_BYTES;
      const part = {
        start: Math.max(0, range.start - before),
        end: Math.min(range.end - before, block.sizeBytes),
      };
      yield { block, part };
      position++;
    }
  }
}
