import { crc32 } from 'node:zlib';

export const ZIP_TYPE = 'application/zip';

/** A file or folder to put into an archive. */
export interface ZipEntry {
  /** Path with slashes between names; a folder's ends with one. */
  readonly name: string;
  readonly modifiedMs: number;
  /** 0 for a folder. */
  readonly sizeBytes: number;
  /** Exactly `sizeBytes`. Each chunk is used only until the next one is requested. */
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

/**
 * Returns the archive's size before it is generated: files are stored without compression. Each is a deflate stream of
 * stored blocks, so that streaming readers see where a file ends; with method "stored" they could not (APPNOTE 6.3.10
 * §4.4.4, bit 3).
 */
export function zipSizeBytes(entries: readonly ZipEntry[]): number {
  let offset = 0;
  let centralBytes = 0;
  for (const entry of entries) {
    centralBytes += centralHeader(entry, { offset, crc: 0 }).length;
    offset += localHeader(entry).length + packedBytes(entry);
    offset += descriptorBytes(entry);
  }
  return offset + centralBytes + endRecords(entries.length, offset, centralBytes).length;
}

/**
 * Yields the archive. Throws when a file does not have the expected number of bytes; the archive is then incomplete.
 */
export async function* zipBytes(entries: readonly ZipEntry[]): AsyncGenerator<Uint8Array> {
  let offset = 0;
  const central: Buffer[] = [];
  for (const entry of entries) {
    const header = localHeader(entry);
    yield header;
    const sum = { crc: 0 };
    if (entry.sizeBytes > 0) {
      yield* storedBlocks(entry, sum);
      yield descriptor(entry, sum.crc);
    }
    central.push(centralHeader(entry, { offset, crc: sum.crc }));
    offset += header.length + packedBytes(entry) + descriptorBytes(entry);
  }
  const directory = Buffer.concat(central);
  yield directory;
  yield endRecords(entries.length, offset, directory.length);
}

/** Maximum size of a stored block (RFC 1951 §3.2.4), in bytes. */
const BLOCK_BYTES_MAX = 65_535;
const BLOCK_HEADER_BYTES = 5;

/** Stored blocks that are yielded together: few, because each is a copy, and many, because each is a write. */
const BLOCKS_AT_ONCE = 8;

function packedBytes({ sizeBytes }: ZipEntry): number {
  return sizeBytes + BLOCK_HEADER_BYTES * Math.ceil(sizeBytes / BLOCK_BYTES_MAX);
}

/** Whether the sizes of a file exceed the old fields, so that they are in Zip64 fields (APPNOTE §4.5.3). */
function isLarge(entry: ZipEntry): boolean {
  return packedBytes(entry) >= MAX_32;
}

/** Size of the record behind a file's bytes, which a Zip64 file has with longer fields (§4.3.9.2). */
function descriptorBytes(entry: ZipEntry): number {
  if (entry.sizeBytes === 0) return 0;
  return isLarge(entry) ? 24 : 16;
}

async function* storedBlocks(entry: ZipEntry, sum: { crc: number }): AsyncGenerator<Uint8Array> {
  let leftBytes = entry.sizeBytes;
  let leftInBlock = 0;
  for await (const chunk of entry.bytes()) {
    if (chunk.length > leftBytes) throw wrongSize(entry);
    sum.crc = crc32(chunk, sum.crc);
    let parts: Uint8Array[] = [];
    for (let taken = 0; taken < chunk.length; ) {
      if (leftInBlock === 0) {
        if (parts.length >= 2 * BLOCKS_AT_ONCE) {
          yield Buffer.concat(parts);
          parts = [];
        }
        leftInBlock = Math.min(leftBytes, BLOCK_BYTES_MAX);
        parts.push(blockHeader(leftInBlock, leftInBlock === leftBytes));
      }
      const part = chunk.subarray(taken, taken + leftInBlock);
      parts.push(part);
      taken += part.length;
      leftInBlock -= part.length;
      leftBytes -= part.length;
    }
    yield Buffer.concat(parts);
  }
  if (leftBytes > 0) throw wrongSize(entry);
}

function wrongSize({ name, sizeBytes }: ZipEntry): Error {
  return new Error(`${JSON.stringify(name)} does not have the expected ${sizeBytes} bytes`);
}

function blockHeader(sizeBytes: number, isLast: boolean): Buffer {
  const header = Buffer.alloc(BLOCK_HEADER_BYTES);
  header.writeUInt8(isLast ? 1 : 0, 0);
  header.writeUInt16LE(sizeBytes, 1);
  header.writeUInt16LE(BLOCK_BYTES_MAX - sizeBytes, 3);
  return header;
}

/** General purpose flags: names are UTF-8; a file's checksum and sizes follow its bytes. */
const UTF8_FLAG = 0x0800;
const DESCRIPTOR_FLAG = 0x0008;
const DEFLATE = 8;
/** Version needed for deflate and folders, and for Zip64. */
const VERSION_NEEDED = 20;
const VERSION_NEEDED_ZIP64 = 45;
/** Unix, so that readers use the file mode in the external attributes. */
const VERSION_MADE_BY = (3 << 8) | VERSION_NEEDED_ZIP64;

/** Writes the fields that local and central headers share, from the version to the times. */
function writeCommon(header: Buffer, at: number, entry: ZipEntry): void {
  const { sizeBytes, modifiedMs } = entry;
  const hasBytes = sizeBytes > 0;
  header.writeUInt16LE(isLarge(entry) ? VERSION_NEEDED_ZIP64 : VERSION_NEEDED, at);
  header.writeUInt16LE(hasBytes ? UTF8_FLAG | DESCRIPTOR_FLAG : UTF8_FLAG, at + 2);
  header.writeUInt16LE(hasBytes ? DEFLATE : 0, at + 4);
  header.writeUInt32LE(dosTime(modifiedMs), at + 6);
}

function localHeader(entry: ZipEntry): Buffer {
  const name = Buffer.from(entry.name);
  const header = Buffer.alloc(30);
  header.writeUInt32LE(0x04034b50, 0);
  writeCommon(header, 4, entry);
  const fields = [timeField(entry.modifiedMs)];
  if (isLarge(entry)) {
    header.writeUInt32LE(MAX_32, 18);
    header.writeUInt32LE(MAX_32, 22);
    // The sizes follow the bytes. The field tells that they have 64 bits there.
    fields.push(zip64Field(0, 0));
  }
  const extra = Buffer.concat(fields);
  header.writeUInt16LE(name.length, 26);
  header.writeUInt16LE(extra.length, 28);
  return Buffer.concat([header, name, extra]);
}

function descriptor(entry: ZipEntry, crc: number): Buffer {
  const record = Buffer.alloc(descriptorBytes(entry));
  record.writeUInt32LE(0x08074b50, 0);
  record.writeUInt32LE(crc, 4);
  if (isLarge(entry)) {
    record.writeBigUInt64LE(BigInt(packedBytes(entry)), 8);
    record.writeBigUInt64LE(BigInt(entry.sizeBytes), 16);
  } else {
    record.writeUInt32LE(packedBytes(entry), 8);
    record.writeUInt32LE(entry.sizeBytes, 12);
  }
  return record;
}

const MAX_16 = 0xffff;
const MAX_32 = 0xffff_ffff;

const FILE_MODE = 0o100644;
const FOLDER_MODE = 0o040755;
const DOS_FOLDER = 0x10;

function centralHeader(
  entry: ZipEntry,
  { offset, crc }: { readonly offset: number; readonly crc: number },
): Buffer {
  const name = Buffer.from(entry.name);
  const isFar = offset >= MAX_32;
  // In this order, and only those that exceed the old fields (§4.5.3).
  const exceeding = [
    ...(isLarge(entry) ? [entry.sizeBytes, packedBytes(entry)] : []),
    ...(isFar ? [offset] : []),
  ];
  const extra = Buffer.concat([
    timeField(entry.modifiedMs),
    ...(exceeding.length > 0 ? [zip64Field(...exceeding)] : []),
  ]);
  const isFolder = entry.name.endsWith('/');
  const header = Buffer.alloc(46);
  header.writeUInt32LE(0x02014b50, 0);
  header.writeUInt16LE(VERSION_MADE_BY, 4);
  writeCommon(header, 6, entry);
  if (isFar) header.writeUInt16LE(VERSION_NEEDED_ZIP64, 6);
  header.writeUInt32LE(crc, 16);
  header.writeUInt32LE(isLarge(entry) ? MAX_32 : packedBytes(entry), 20);
  header.writeUInt32LE(isLarge(entry) ? MAX_32 : entry.sizeBytes, 24);
  header.writeUInt16LE(name.length, 28);
  header.writeUInt16LE(extra.length, 30);
  header.writeUInt16LE(isFolder ? FOLDER_MODE : FILE_MODE, 40);
  header.writeUInt16LE(isFolder ? DOS_FOLDER : 0, 38);
  header.writeUInt32LE(isFar ? MAX_32 : offset, 42);
  return Buffer.concat([header, name, extra]);
}

/** Returns the end of the archive, with Zip64 records where a number exceeds the old field. */
function endRecords(entries: number, offset: number, sizeBytes: number): Buffer {
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Math.min(entries, MAX_16), 8);
  end.writeUInt16LE(Math.min(entries, MAX_16), 10);
  end.writeUInt32LE(Math.min(sizeBytes, MAX_32), 12);
  end.writeUInt32LE(Math.min(offset, MAX_32), 16);
  if (entries < MAX_16 && offset < MAX_32 && sizeBytes < MAX_32) return end;
  const far = Buffer.alloc(56 + 20);
  far.writeUInt32LE(0x06064b50, 0);
  far.writeBigUInt64LE(44n, 4);
  far.writeUInt16LE(VERSION_MADE_BY, 12);
  far.writeUInt16LE(VERSION_NEEDED_ZIP64, 14);
  far.writeBigUInt64LE(BigInt(entries), 24);
  far.writeBigUInt64LE(BigInt(entries), 32);
  far.writeBigUInt64LE(BigInt(sizeBytes), 40);
  far.writeBigUInt64LE(BigInt(offset), 48);
  far.writeUInt32LE(0x07064b50, 56);
  far.writeBigUInt64LE(BigInt(offset + sizeBytes), 64);
  far.writeUInt32LE(1, 72);
  return Buffer.concat([far, end]);
}

/** Returns the Zip64 extended information: numbers that exceed the old fields. */
function zip64Field(...numbers: readonly number[]): Buffer {
  const field = Buffer.alloc(4 + 8 * numbers.length);
  field.writeUInt16LE(0x0001, 0);
  field.writeUInt16LE(8 * numbers.length, 2);
  for (const [index, number] of numbers.entries()) field.writeBigUInt64LE(BigInt(number), 4 + 8 * index);
  return field;
}

/** Returns the extended timestamp: UTC in seconds, where the old field has local time. */
function timeField(modifiedMs: number): Buffer {
  const field = Buffer.alloc(9);
  field.writeUInt16LE(0x5455, 0);
  field.writeUInt16LE(5, 2);
  field.writeUInt8(1, 4);
  field.writeUInt32LE(Math.min(Math.max(0, Math.floor(modifiedMs / 1000)), MAX_32), 5);
  return field;
}

const DOS_YEAR_MIN = 1980;
const DOS_YEAR_MAX = 2107;

/** Returns the time in UTC, because the client's time zone is unknown; the format has steps of two seconds. */
function dosTime(modifiedMs: number): number {
  const time = new Date(modifiedMs);
  const year = Math.min(Math.max(DOS_YEAR_MIN, time.getUTCFullYear()), DOS_YEAR_MAX) - DOS_YEAR_MIN;
  const day = (year << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate();
  const seconds = (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1);
  return ((day << 16) | seconds) >>> 0;
}
