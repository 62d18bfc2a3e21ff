import { BLOCK_BYTES } from '../../util/content-hash.ts';
import type { ByteRange } from '../../util/ranges.ts';
import { type BlockFiles, verified } from './blocks.ts';
import type { BlockRow, Contents } from './contents.ts';
import { DamagedBlockError } from './errors.ts';

/** Blocks looked up at once: even the longest file's list never stands in memory whole. */
const ROWS = 64;

/** The bytes of one block, checked against its hash. Throws `DamagedBlockError`. */
export async function readBlock(files: BlockFiles, contents: Contents, block: BlockRow): Promise<Buffer> {
  if (!block.inline) return await files.read(block);
  const bytes = contents.bytesOf(block.id);
  if (!bytes) throw new DamagedBlockError(block.hash.toString('hex'), 'its bytes are not in the database');
  return verified(block, bytes);
}

/** The bytes of `range` of a content; the next block is read while the last one is taken. */
export async function* readContent(
  files: BlockFiles,
  contents: Contents,
  content: number,
  range: ByteRange,
): AsyncGenerator<Uint8Array, void, undefined> {
  const blocks = blocksIn(contents, content, range);
  let ahead = startReading(files, contents, blocks);
  try {
    for (let position = Math.floor(range.start / BLOCK_BYTES); ahead; position++) {
      const bytes = await ahead;
      ahead = startReading(files, contents, blocks);
      const before = position * BLOCK_BYTES;
      yield bytes.subarray(Math.max(0, range.start - before), range.end - before);
    }
  } finally {
    await ahead?.catch(() => undefined);
  }
}

/** Begins to read the next block, if there is one. */
function startReading(
  files: BlockFiles,
  contents: Contents,
  blocks: Iterator<BlockRow>,
): Promise<Buffer> | undefined {
  const { value, done } = blocks.next();
  if (done) return undefined;
  const reading = readBlock(files, contents, value);
  // Whoever awaits it hears of a failure; until then it is not unhandled.
  reading.catch(() => undefined);
  return reading;
}

/** The blocks that hold the bytes of `range`, looked up as they are needed. */
function* blocksIn(
  contents: Contents,
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
