import { createHash, randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, renameSync, rmSync, writevSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { ByteRange } from '../../util/ranges.ts';
import type { BlockToWrite } from './block-thread.ts';

/** Size of a piece with its own checksum, in bytes, so that a small read of a big block costs little. */
export const PIECE_BYTES = 64 * 1024;

const MAGIC = Buffer.from('DAVGBLK1');

/** Size of the checksums of the name and of the header. */
const CHECKSUM_BYTES = 8;

/**
 * Size of a piece's CRC-32. It detects accidents, not attacks: a user who can write here can read the files as well. It
 * takes a third of the time of a SHA-256, which was half the cost of a block from the disk.
 */
const PIECE_CHECKSUM_BYTES = 4;

/** Thrown when the bytes in a block's file are not the bytes that were written. */
export class DamagedFileError extends Error {
  override readonly name = 'DamagedFileError';
}

/**
 * Returns the header of a block's file: the magic, a checksum of the file's name, one of each piece, and one of the
 * header itself. The name detects a file that was renamed to another block's name.
 */
function encodeHeader(name: string, bytes: Uint8Array): Buffer {
  const count = Math.ceil(bytes.length / PIECE_BYTES);
  const checksums = Buffer.alloc(count * PIECE_CHECKSUM_BYTES);
  for (let piece = 0; piece < count; piece++) {
    const start = piece * PIECE_BYTES;
    checksums.writeUInt32BE(crc32(bytes.subarray(start, start + PIECE_BYTES)), piece * PIECE_CHECKSUM_BYTES);
  }
  const head = Buffer.concat([MAGIC, checksumOf(Buffer.from(name)), checksums]);
  return Buffer.concat([head, checksumOf(head)]);
}

/**
 * Writes the file of a block, first under a temporary name, so that a file with a block's name is whole. Returns its
 * length in bytes. Blocks its thread meanwhile. Throws the file system's errors.
 */
export function writeBlockFile({ name, path, incoming, bytes }: BlockToWrite): number {
  const header = encodeHeader(name, bytes);
  const temporary = join(incoming, randomUUID());
  try {
    const file = withFolder(incoming, () => openSync(temporary, 'wx', 0o600));
    try {
      if (writevSync(file, [header, bytes]) !== header.length + bytes.length)
        throw new Error('the disk took only a part of a block; it may be full');
    } finally {
      closeSync(file);
    }
    withFolder(dirname(path), () => renameSync(temporary, path));
  } catch (failure) {
    rmSync(temporary, { force: true });
    throw failure;
  }
  return header.length + bytes.length;
}

/** Runs `work`, and makes `folder` and runs it again when that is missing: the cache may be deleted at any time. */
function withFolder<Value>(folder: string, work: () => Value): Value {
  try {
    return work();
  } catch (failure) {
    if ((failure as NodeJS.ErrnoException).code !== 'ENOENT') throw failure;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return work();
  }
}

/** Returns the length of a block's file. */
export function fileBytesOf(sizeBytes: number): number {
  return headerBytesOf(sizeBytes) + sizeBytes;
}

/**
 * Reads the bytes from `start` up to `end` of the block in `file`, and checks each piece. The bytes lie in `into`, if
 * given, which is as large as the block. Throws `DamagedFileError`.
 */
export async function readBlockFile(
  file: FileHandle,
  name: string,
  sizeBytes: number,
  { start, end }: ByteRange,
  into?: Buffer,
): Promise<Buffer> {
  const headerBytes = headerBytesOf(sizeBytes);
  const firstPiece = Math.floor(start / PIECE_BYTES);
  const from = firstPiece * PIECE_BYTES;
  const to = Math.min(Math.ceil(end / PIECE_BYTES) * PIECE_BYTES, sizeBytes);
  const [header, bytes] = await Promise.all([
    readExactly(file, 0, Buffer.allocUnsafe(headerBytes)),
    readExactly(file, headerBytes + from, into?.subarray(0, to - from) ?? Buffer.allocUnsafeSlow(to - from)),
  ]);
  checkHeader(header, name);
  for (let at = 0, piece = firstPiece; at < bytes.length; at += PIECE_BYTES, piece++) {
    const checksum = crc32(bytes.subarray(at, at + PIECE_BYTES));
    if (checksum !== header.readUInt32BE(MAGIC.length + CHECKSUM_BYTES + PIECE_CHECKSUM_BYTES * piece))
      throw new DamagedFileError(`${name}: piece ${piece} is damaged`);
  }
  return bytes.subarray(start - from, end - from);
}

function checkHeader(header: Buffer, name: string): void {
  const head = header.subarray(0, -CHECKSUM_BYTES);
  const expected = Buffer.concat([MAGIC, checksumOf(Buffer.from(name))]);
  const ok =
    checksumOf(head).equals(header.subarray(-CHECKSUM_BYTES)) &&
    head.subarray(0, expected.length).equals(expected);
  if (!ok) throw new DamagedFileError(`${name}: the header is damaged`);
}

/** Fills `buffer` from `position` on. */
async function readExactly(file: FileHandle, position: number, buffer: Buffer): Promise<Buffer> {
  for (let filled = 0; filled < buffer.length; ) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, position + filled);
    if (bytesRead === 0) throw new DamagedFileError('a block file ends early');
    filled += bytesRead;
  }
  return buffer;
}

function headerBytesOf(sizeBytes: number): number {
  return MAGIC.length + 2 * CHECKSUM_BYTES + PIECE_CHECKSUM_BYTES * Math.ceil(sizeBytes / PIECE_BYTES);
}

function checksumOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest().subarray(0, CHECKSUM_BYTES);
}
