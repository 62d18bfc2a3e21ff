import type { FileEntry } from '../../api/remote.ts';
import { BLOCK_BYTES } from '../../util/content-hash.ts';
import type { ByteRange } from '../../util/ranges.ts';

/** Names the bytes of one block of some content: equal keys, equal bytes. */
export interface BlockKey {
  /** The content as `contentKeyOf` names it. */
  readonly content: string;
  /** 0 for the first. */
  readonly index: number;
  readonly sizeBytes: number;
}

/**
 * What names a file's content for ever: its hash, which stays when the file is moved or copied; without one
 * the revision, which the service never gives to other bytes.
 */
export function contentKeyOf(file: FileEntry): string {
  return `${file.contentHash ?? `${file.id} ${file.rev}`} ${file.sizeBytes}`;
}

/** The index of the block that holds the byte at `offset`. */
export function blockAt(offset: number): number {
  return Math.floor(offset / BLOCK_BYTES);
}

/** How many blocks `sizeBytes` bytes take. */
export function blockCount(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BLOCK_BYTES);
}

/** Where a block of `file` lies in it. */
export function rangeOfBlock(file: FileEntry, index: number): ByteRange {
  const start = index * BLOCK_BYTES;
  return { start, end: Math.min(start + BLOCK_BYTES, file.sizeBytes) };
}

export function blockKey(file: FileEntry, index: number): BlockKey {
  const { start, end } = rangeOfBlock(file, index);
  return { content: contentKeyOf(file), index, sizeBytes: end - start };
}
