import { open, readdir, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../util/clock.ts';
import { smallest } from '../../util/extremes.ts';
import type { Log } from '../../util/log.ts';
import { makeFolder } from '../../util/make-folder.ts';
import type { Lease } from './block-buffers.ts';
import { DamagedFileError, fileBytesOf, readBlockFile } from './block-file.ts';
import { type BlockPart, BlockParts, partOf } from './block-parts.ts';
import { BlockWriter, isOutOfHandles } from './block-writer.ts';
import type { BlockKey } from './blocks.ts';

/**
 * Blocks of files that were read, kept to be read again. It may forget anything at any time, and never gives
 * other bytes than it was given. No call throws: trouble with the disk is a miss.
 */
export interface BlockCache {
  /** Whether its byte `at`, or its first, is there. */
  has(block: BlockKey, at?: number): boolean;
  /** Where the first part of it begins that is there and begins after `at`. */
  partAfter(block: BlockKey, at: number): number | undefined;
  /**
   * The bytes of the block from `start` up to `end`, or the first of them when it is not there up to `end`;
   * `undefined` when the first is not, or is not what it was. They are the caller's own, or in `into`, which is as
   * large as the block.
   */
  read(block: BlockKey, start: number, end: number, into?: Buffer): Promise<Uint8Array | undefined>;
  /** Whether a file of this size may be kept whole: that leaves most of the room to others. */
  hasRoomFor(sizeBytes: number): boolean;
  /** Keeps a block, or what of it begins at `from`. Returns at once: whether the disk is to get it, or is too far behind. */
  keep(block: BlockKey, bytes: Uint8Array, options?: KeepOptions): boolean;
  forget(block: BlockKey): void;
  /** Resolves when everything kept is on the disk or was given up; keeps nothing afterwards. */
  close(): Promise<void>;
}

export interface KeepOptions {
  /** Where in the block the bytes begin; 0 if left out. */
  readonly from?: number;
  /** Of the bytes; without one they must not change any more. */
  readonly lease?: Lease;
}

export interface BlockCacheOptions {
  /** May be deleted at any time; made when it is not there. */
  readonly directory: string;
  /** The most that the files take on the disk; 0 keeps nothing there. */
  readonly sizeBytesMax: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The latest blocks also stay in memory: a client that reads in steps of 64 KiB asks for one block 64 times. */
const HOT_BYTES_MAX = 10 * 1024 * 1024;

/** Beside a block's bytes, what it takes in memory; keeps tiny ones from being too many. */
const HOT_OVERHEAD_BYTES = 512;

/** The share of the room that one file may take. */
const FILE_SHARE_MAX = 0.25;

/** About 16 MB of memory for the index. */
const FILES_MAX = 100_000;

/** A file system gives room in units of this size. */
const DISK_UNIT_BYTES = 4096;

/** The format's version; a folder with another name is another one's. */
const FORMAT = 'v1';

/** Tells backup programs to pass by (bford.info/cachedir). */
const CACHEDIR_TAG =
  'Signature: 8a477f597d28d172789f06886806bc55\n# Pieces of files that davgate can fetch again.\n';

/**
 * The block cache in `directory`: a file a block under `v1/`, named by a hash of its key, and an index in
 * memory that forgets the longest unused block first. A directory that cannot be written to costs a warning,
 * and is tried again from time to time. `diskBytes`: what the files take.
 */
export async function openBlockCache(
  options: BlockCacheOptions,
): Promise<BlockCache & { readonly diskBytes: number }> {
  const { directory, sizeBytesMax, clock, log } = options;
  const root = join(directory, FORMAT);
  const index = openIndex(root, sizeBytesMax);
  const parts = new BlockParts(FILES_MAX);
  const writer = new BlockWriter({
    root,
    clock,
    log,
    async prepare() {
      // First: what cannot be written to can still be read. Later: what was there before a disk went and came back.
      for await (const { name, from, to } of storedParts(root)) {
        parts.found({ name, from, to });
        if (!index.has(name)) index.set(name, diskBytesOf(fileBytesOf(to - from)));
      }
      await prepare(directory, root);
    },
    onWritten: (name, fileBytes) => index.set(name, diskBytesOf(fileBytes)),
  });
  if (sizeBytesMax > 0) await writer.open();
  else writer.disable();
  return new DiskCache(root, index, parts, writer, log);
}

/** From a file's name to the room that it takes. */
type Index = LRUCache<string, number>;

function openIndex(root: string, sizeBytesMax: number): Index {
  return new LRUCache<string, number>({
    max: FILES_MAX,
    maxSize: Math.max(1, sizeBytesMax),
    sizeCalculation: (diskBytes) => diskBytes,
    dispose: (_size, name, reason) => {
      // Gone already, or not to be removed: then the next start finds it again.
      if (reason !== 'set') unlink(filePath(root, name)).catch(() => {});
    },
  });
}

/** Bytes in memory. */
interface Hot {
  readonly bytes: Uint8Array;
  readonly lease: Lease | undefined;
}

class DiskCache implements BlockCache {
  readonly #hot = new LRUCache<string, Hot>({
    maxSize: HOT_BYTES_MAX,
    dispose: ({ lease }) => lease?.release(),
  });

  constructor(
    private readonly root: string,
    private readonly index: Index,
    private readonly parts: BlockParts,
    private readonly writer: BlockWriter,
    private readonly log: Log,
  ) {}

  get diskBytes(): number {
    return this.index.calculatedSize;
  }

  has(block: BlockKey, at = 0): boolean {
    return this.#partWith(block, at) !== undefined;
  }

  partAfter(block: BlockKey, at: number): number | undefined {
    const later = this.parts.of(block).filter((part) => part.from > at && this.#isThere(part));
    return later.length > 0 ? smallest(later.map(({ from }) => from)) : undefined;
  }

  async read(block: BlockKey, start: number, end: number, into?: Buffer): Promise<Uint8Array | undefined> {
    const part = this.#partWith(block, start);
    if (!part) return undefined;
    const { name, from } = part;
    const to = Math.min(end, part.to);
    const inMemory = this.#hot.get(name) ?? this.writer.waiting(name);
    if (inMemory) {
      this.index.get(name);
      const bytes = inMemory.bytes.subarray(start - from, to - from);
      if (!inMemory.lease) return bytes;
      if (!into) return Buffer.from(bytes);
      into.set(bytes);
      return into.subarray(0, bytes.length);
    }
    if (this.index.get(name) === undefined) return undefined;
    try {
      return await this.#readFile(part, start, to, into);
    } catch (failure) {
      if (failure instanceof DamagedFileError)
        this.log.warn('a cached block was damaged and is fetched again', { block: name });
      if (!isOutOfHandles(failure)) this.index.delete(name);
      return undefined;
    }
  }

  hasRoomFor(sizeBytes: number): boolean {
    return sizeBytes <= this.index.maxSize * FILE_SHARE_MAX;
  }

  keep(block: BlockKey, bytes: Uint8Array, { from = 0, lease }: KeepOptions = {}): boolean {
    const { name } = this.parts.add(block, from, from + bytes.length);
    lease?.hold();
    this.#hot.set(name, { bytes, lease }, { size: bytes.length + HOT_OVERHEAD_BYTES });
    const fits = diskBytesOf(fileBytesOf(bytes.length)) <= this.index.maxSize;
    if (!fits || this.index.has(name)) return fits;
    return this.writer.add({ name, path: filePath(this.root, name), bytes, lease });
  }

  forget(block: BlockKey): void {
    for (const { name } of this.parts.of(block)) {
      this.#hot.delete(name);
      this.writer.drop(name);
      this.index.delete(name);
    }
  }

  #partWith(block: BlockKey, at: number): BlockPart | undefined {
    return this.parts.of(block).find((part) => at >= part.from && at < part.to && this.#isThere(part));
  }

  #isThere({ name }: BlockPart): boolean {
    return this.#hot.has(name) || this.index.has(name) || this.writer.waiting(name) !== undefined;
  }

  close(): Promise<void> {
    return this.writer.close();
  }

  async #readFile(
    { name, from, to }: BlockPart,
    start: number,
    end: number,
    into: Buffer | undefined,
  ): Promise<Buffer> {
    const file = await open(filePath(this.root, name));
    try {
      return await readBlockFile(file, name, to - from, { start: start - from, end: end - from }, into);
    } finally {
      await file.close();
    }
  }
}

function filePath(root: string, name: string): string {
  return join(root, name.slice(0, 2), name);
}

function diskBytesOf(fileBytes: number): number {
  return Math.ceil(fileBytes / DISK_UNIT_BYTES) * DISK_UNIT_BYTES;
}

async function prepare(directory: string, root: string): Promise<void> {
  await rm(join(root, 'incoming'), { recursive: true, force: true });
  makeFolder(join(root, 'incoming'));
  await writeFile(join(directory, 'CACHEDIR.TAG'), CACHEDIR_TAG, { flag: 'wx' }).catch((failure) => {
    if (failure.code !== 'EEXIST') throw failure;
  });
}

async function* storedParts(root: string): AsyncGenerator<BlockPart> {
  const folders = await readdir(root).catch(() => []);
  for (const folder of folders) {
    if (!/^[0-9a-f]{2}$/.test(folder)) continue;
    const names = await readdir(join(root, folder)).catch(() => []);
    for (const name of names) {
      const part = partOf(name);
      if (part && name.startsWith(folder)) yield part;
    }
  }
}
