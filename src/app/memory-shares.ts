import { BLOCK_BYTES } from '../util/content-hash.ts';

const MIB = 1024 * 1024;

/** Sizes of the parts that would fill a small machine's memory. A machine with 2 GiB has room for all that is useful. */
export interface MemoryShares {
  /** Maximum size of the metadata cache of each drive, in bytes. */
  readonly metadataBytesMax: number;
  /** Maximum size of the rendered listings that are kept to be sent again, in bytes. */
  readonly listingBytesMax: number;
  /** Limits of the uploads of each drive. */
  readonly uploads: { readonly partBytes: number; readonly buffersMax: number };
}

/** Divides `memoryBytes` for a gateway with this number of drives. */
export function memoryShares(memoryBytes: number, drives: number): MemoryShares {
  // 100,000 entries, 150,000 rows, and eight parts of 8 MiB.
  const metadata = Math.min(64 * MIB, memoryBytes / 16 / drives);
  const listings = Math.min(64 * MIB, memoryBytes / 32);
  const uploads = Math.min(64 * MIB, memoryBytes / 8);
  const partBytes = uploads < 64 * MIB ? BLOCK_BYTES : 2 * BLOCK_BYTES;
  return {
    metadataBytesMax: Math.floor(metadata),
    listingBytesMax: Math.floor(listings),
    uploads: { partBytes, buffersMax: Math.max(1, Math.floor(uploads / partBytes)) },
  };
}
