import { randomBytes } from 'node:crypto';
import type { IncomingFile } from './incoming-files.ts';

/** Where blocks are kept by name: a folder, or a bucket of an object store. A block is there whole or not at all. */
export interface BlockPlace {
  /** Whether the bytes of a block come over a network, on which they can change: they are read again before they count as damaged. */
  readonly isRemote: boolean;
  /** Makes the place ready, and checks that it can be used. Throws what tells the operator why not. */
  prepare(): Promise<void>;
  /** Returns a name for a block that is new here. It begins with the block's hash in hex. */
  newName(hash: string): string;
  /** Keeps the bytes of a complete file, and removes the file. They survive a crash after the next `sync`. */
  keep(name: string, incoming: IncomingFile): Promise<void>;
  /** Makes durable what was kept before the call. */
  sync(): Promise<void>;
  /**
   * Returns the bytes of a block from `start` on, at most `sizeBytes`, in `into` if given; fewer when it is shorter. Throws
   * `LostBlockError`.
   */
  read(name: string, sizeBytes: number, into?: Buffer, start?: number): Promise<Buffer>;
  /** Removes a block. Succeeds if there is none. */
  remove(name: string): Promise<void>;
  /** Yields the names of all blocks, perhaps among others; none of a folder that is missing. */
  names(): AsyncIterable<string>;
  /** Ends the use of the place. */
  close(): Promise<void>;
}

/** A place no longer has a block, or cannot read it ever again. */
export class LostBlockError extends Error {
  override readonly name = 'LostBlockError';
}

/** Digits of the hash at the beginning of a name. */
const HASH_DIGITS = 64;

/** Returns the hash, in hex, with which the name of a block begins; `undefined` for another name. */
export function hashIn(name: string): string | undefined {
  return /^[0-9a-f]{64}(-|$)/.test(name) ? name.slice(0, HASH_DIGITS) : undefined;
}

/** Bytes of a name that make it a new one. */
const NAME_BYTES = 8;

/**
 * Returns a name that no block of this hash, in hex, has ever had: a removal or an upload whose answer was lost, and which takes
 * place later, meets no other block.
 */
export function uniqueName(hash: string): string {
  return `${hash}-${randomBytes(NAME_BYTES).toString('hex')}`;
}
