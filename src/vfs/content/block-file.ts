import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

/** Each run of this many bytes has its own checksum, so that a small read of a big block costs little. */
export const PIECE_BYTES = 64 * 1024;

const MAGIC = Buffer.from('DAVGBLK1');

/** A checksum finds accidents, not enemies: who can write here can read the files as well. */
const CHECKSUM_BYTES = 8;

/** Pieces that are hashed in one turn of the event loop, about half a millisecond. */
const PIECES_PER_TURN = 16;

/** The bytes in a block's file are not what was written. */
export class DamagedFileError extends Error {
  override readonly name = 'DamagedFileError';
}

/**
 * What precedes the bytes in a block's file: the magic, the file's name, a checksum of each piece, and one of
 * all that. The name is in it so that a file under another one's name is found out.
 */
export async function encodeHeader(name: string, bytes: Uint8Array): Promise<Buffer> {
  const checksums: Buffer[] = [];
  for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
    checksums.push(checksumOf(bytes.subarray(start, start + PIECE_BYTES)));
    if (checksums.length % PIECES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const head = Buffer.concat([MAGIC, checksumOf(Buffer.from(name)), ...checksums]);
  return Buffer.concat([head, checksumOf(head)]);
}

/** The length of a block's file. */
export function fileBytesOf(sizeBytes: number): number {
  return headerBytesOf(sizeBytes) + sizeBytes;
}

/**
 * The bytes from `start` up to `end` of the block in `file`, each piece compared with its checksum. Throws
 * `DamagedFileError`.
 */
export async function readBlockFile(
  file: FileHandle,
  name: string,
  sizeBytes: number,
  start: number,
  end: number,
): Promise<Buffer> {
  const headerBytes = headerBytesOf(sizeBytes);
  const firstPiece = Math.floor(start / PIECE_BYTES);
  const from = firstPiece * PIECE_BYTES;
  const to = Math.min(Math.ceil(end / PIECE_BYTES) * PIECE_BYTES, sizeBytes);
  const [header, bytes] = await Promise.all([
    readExactly(file, 0, headerBytes),
    readExactly(file, headerBytes + from, to - from),
  ]);
  checkHeader(header, name);
  for (let at = 0, piece = firstPiece; at < bytes.length; at += PIECE_BYTES, piece++) {
    const checksum = checksumOf(bytes.subarray(at, at + PIECE_BYTES));
    const position = MAGIC.length + CHECKSUM_BYTES * (1 + piece);
    if (!checksum.equals(header.subarray(position, position + CHECKSUM_BYTES)))
      throw new DamagedFileError(`${name}: piece ${piece} has changed`);
  }
  return bytes.subarray(start - from, end - from);
}

function checkHeader(header: Buffer, name: string): void {
  const head = header.subarray(0, -CHECKSUM_BYTES);
  const expected = Buffer.concat([MAGIC, checksumOf(Buffer.from(name))]);
  const ok =
    checksumOf(head).equals(header.subarray(-CHECKSUM_BYTES)) &&
    head.subarray(0, expected.length).equals(expected);
  if (!ok) throw new DamagedFileError(`${name}: its header has changed`);
}

async function readExactly(file: FileHandle, position: number, lengthBytes: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(lengthBytes);
  for (let filled = 0; filled < lengthBytes; ) {
    const { bytesRead } = await file.read(buffer, filled, lengthBytes - filled, position + filled);
    if (bytesRead === 0) throw new DamagedFileError('a block file ends early');
    filled += bytesRead;
  }
  return buffer;
}

function headerBytesOf(sizeBytes: number): number {
  return MAGIC.length + CHECKSUM_BYTES * (2 + Math.ceil(sizeBytes / PIECE_BYTES));
}

function checksumOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest().subarray(0, CHECKSUM_BYTES);
}
