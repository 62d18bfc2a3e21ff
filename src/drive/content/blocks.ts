import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES } from '../../util/content-hash.ts';
import type { ByteRange } from '../../util/ranges.ts';

/** The key of one block of some content: equal keys mean equal bytes. */
export interface BlockKey {
  /** The key from `contentKeyOf`. */
  readonly content: string;
  /** Position of the block in the content; 0 for the first. */
  readonly index: number;
  readonly sizeBytes: number;
}

/**
 * Returns a permanent key of a file's content: its hash, which survives moves and copies, or without a hash its
 * revision, which the service never gives to other bytes.
 */
export function contentKeyOf(file: FileEntry): string {
  return `${file.contentHash ?? `${file.id} ${file.rev}`} ${file.sizeBytes}`;
}

/** Returns the index of the block with the byte at `offset`. */
export function blockAt(offset: number): number {
  return Math.floor(offset / BLOCK_BYTES);
}

/** Returns the number of blocks of `sizeBytes` bytes. */
export function blockCount(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BLOCK_BYTES);
}

/** Returns the range of a block of `file`. */
export function rangeOfBlock(file: FileEntry, index: number): ByteRange {
  const start = index * BLOCK_BYTES;
  return { start, end: Math.min(start + BLOCK_BYTES, file.sizeBytes) };
}

export function blockKey(file: FileEntry, index: number): BlockKey {
  const { start, end } = rangeOfBlock(file, index);
  return { content: contentKeyOf(file), index, sizeBytes: end - start };
}
