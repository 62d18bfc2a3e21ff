import { hash } from 'node:crypto';
import { open, readdir, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../util/clock.ts';
import { smallest } from '../../util/extremes.ts';
import type { Log } from '../../util/log.ts';
import { createLru } from '../../util/lru.ts';
import { makeFolder } from '../../util/make-folder.ts';
import { type Meter, silentMeter } from '../../util/meter.ts';
import type { RefCounted } from './block-buffers.ts';
import { DamagedFileError, fileBytesOf, readBlockFile } from './block-file.ts';
import { BlockWriter, isOutOfHandles } from './block-writer.ts';
import type { BlockKey } from './blocks.ts';

/**
 * Blocks of files that were read, kept to be read again. The cache may forget anything at any time, and never returns
 * other bytes than it was given. No call throws: a failing disk is a miss.
 */
export interface BlockCache {
  /** Whether the byte `at` of the block, or its first, is cached. */
  has(block: BlockKey, at?: number): boolean;
  /** Returns where the first cached part of the block that begins after `at` begins. */
  partAfter(block: BlockKey, at: number): number | undefined;
  /**
   * Returns the bytes of the block from `start` up to `end`, or fewer when the cached part ends before `end`;
   * `undefined` when the first of them is missing or damaged. The bytes are the caller's own, or lie in `into`, which
   * is as large as the block.
   */
  read(block: BlockKey, start: number, end: number, into?: Buffer): Promise<Uint8Array | undefined>;
  /** Returns the whole block if it is in memory and its bytes never change there. */
  inMemory(block: BlockKey): Uint8Array | undefined;
  /** Whether a file of this size may be kept whole, because it leaves most of the room to others. */
  hasRoomFor(sizeBytes: number): boolean;
  /** Resolves when the disk can take another block, and after 50 ms in any case. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
  /**
   * Keeps a block, or the part of it at `from`. Returns at once; `false` when the disk is too far behind to take it.
   */
  keep(block: BlockKey, bytes: Uint8Array, options?: KeepOptions): boolean;
  forget(block: BlockKey): void;
  /** Resolves when all kept blocks are on the disk or were dropped. Nothing is kept afterwards. */
  close(): Promise<void>;
}

export interface KeepOptions {
  /** Where in the block the bytes begin; 0 when left out. */
  readonly from?: number;
  /** The buffer that the bytes lie in. Bytes without one must not change any more. */
  readonly buffer?: RefCounted;
}

export interface BlockCacheOptions {
  /** The cache's directory. It is made when missing, and may be deleted at any time. */
  readonly directory: string;
  /** Maximum size of the files on the disk, in bytes; 0 keeps blocks in memory only. */
  readonly sizeBytesMax: number;
  /** Maximum number of the files. */
  readonly filesMax?: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts the bytes that are read and kept. */
  readonly meter?: Pick<Meter, 'blockRead' | 'blockKept'>;
}

/**
 * Size of the latest blocks that also stay in memory: a client that reads in steps of 64 KiB needs each block 64 times.
 */
const MEMORY_BYTES_MAX = 10 * 1024 * 1024;

/** Memory that a block takes beside its bytes: it bounds the number of tiny blocks. */
const MEMORY_OVERHEAD_BYTES = 512;

/** Maximum size of a block that stays in memory when it was read from the disk, in bytes. */
const SHORT_BYTES_MAX = 64 * 1024;

/** Share of the room that one file may take. */
const FILE_SHARE_MAX = 0.25;

/** Maximum number of files: about 16 MB of memory for the index. */
const FILES_MAX = 100_000;

/** Unit in which a file system allocates room. */
const DISK_UNIT_BYTES = 4096;

/** Version of the format, and name of its folder; folders with other names are left alone. */
const FORMAT = 'v1';

/** Tells backup programs to skip the directory (bford.info/cachedir). */
const CACHEDIR_TAG =
  'Signature: 8a477f597d28d172789f06886806bc55\n# Pieces of files that davgate can fetch again.\n';

/**
 * Opens the block cache in `directory`: one file a block under `v1/`, named by a hash of its key, and an index in
 * memory that forgets the least recently used block first. A directory that cannot be written to is logged, and tried
 * again from time to time. `diskBytes` is the size of the files.
 */
export async function openBlockCache(
  options: BlockCacheOptions,
): Promise<BlockCache & { readonly diskBytes: number }> {
  const { directory, sizeBytesMax, filesMax = FILES_MAX, clock, log, meter = silentMeter } = options;
  const root = join(directory, FORMAT);
  const index = openIndex(root, sizeBytesMax);
  const deps = new BlockDeps(filesMax);
  const writer = new BlockWriter({
    root,
    clock,
    log,
    async prepare() {
      // First, because a cache that cannot be written to can still be read; a disk that comes back has its old files.
      for await (const { name, from, to } of storedParts(root)) {
        deps.addFound({ name, from, to });
        if (!index.has(name)) addToIndex(index, filesMax, name, fileBytesOf(to - from));
      }
      await prepare(directory, root);
    },
    onWritten: (name, fileBytes) => addToIndex(index, filesMax, name, fileBytes),
  });
  if (sizeBytesMax > 0) await writer.open();
  else writer.disable();
  return new DiskCache(root, index, deps, writer, log, meter);
}

/** The room that each file takes, by name. */
type Index = LRUCache<string, number>;

/** Adds a file, and forgets the least recently used beyond `filesMax`. */
function addToIndex(index: Index, filesMax: number, name: string, fileBytes: number): void {
  index.set(name, diskBytesOf(fileBytes));
  while (index.size > filesMax) index.pop();
}

function openIndex(root: string, sizeBytesMax: number): Index {
  return new LRUCache<string, number>({
    maxSize: Math.max(1, sizeBytesMax),
    sizeCalculation: (diskBytes) => diskBytes,
    dispose: (_size, name, reason) => {
      // A file that cannot be removed is found again at the next start.
      if (reason !== 'set') unlink(filePath(root, name)).catch(() => {});
    },
  });
}

interface BlockInMemory {
  readonly bytes: Uint8Array;
  readonly buffer: RefCounted | undefined;
}

class DiskCache implements BlockCache {
  readonly #inMemory = new LRUCache<string, BlockInMemory>({
    maxSize: MEMORY_BYTES_MAX,
    dispose: ({ buffer }) => buffer?.release(),
  });

  constructor(
    private readonly root: string,
    private readonly index: Index,
    private readonly deps: BlockDeps,
    private readonly writer: BlockWriter,
    private readonly log: Log,
    private readonly meter: Pick<Meter, 'blockRead' | 'blockKept'>,
  ) {}

  get diskBytes(): number {
    return this.index.calculatedSize;
  }

  has(block: BlockKey, at = 0): boolean {
    return this.#partWith(block, at) !== undefined;
  }

  partAfter(block: BlockKey, at: number): number | undefined {
    const later = this.deps.of(block).filter((part) => part.from > at && this.#isThere(part));
    return later.length > 0 ? smallest(later.map(({ from }) => from)) : undefined;
  }

  async read(block: BlockKey, start: number, end: number, into?: Buffer): Promise<Uint8Array | undefined> {
    const part = this.#partWith(block, start);
    if (!part) return undefined;
    const to = Math.min(end, part.to);
    const inMemory = this.#inMemory.get(part.name) ?? this.writer.waiting(part.name);
    // The index counts the use in either case.
    const isOnDisk = this.index.get(part.name) !== undefined;
    let bytes: Uint8Array | undefined;
    if (inMemory) bytes = readMemory(inMemory, start - part.from, to - part.from, into);
    else if (isOnDisk) {
      bytes = await this.#readDisk(part, start, to, into);
      // Reading it again would take several turns of the thread pool.
      const isShort = bytes?.length === part.to - part.from && bytes.length <= SHORT_BYTES_MAX;
      // The block may have been forgotten meanwhile, and even kept again with other bytes.
      const isCurrent = this.index.has(part.name) && !this.#inMemory.has(part.name);
      if (bytes && isShort && isCurrent && !into) this.#remember(part.name, { bytes, buffer: undefined });
    }
    if (bytes) this.meter.blockRead(bytes.length);
    return bytes;
  }

  inMemory(block: BlockKey): Uint8Array | undefined {
    const name = nameOf(block);
    const found = this.#inMemory.get(name);
    if (!found || found.buffer) return undefined;
    // The index counts the use.
    this.index.get(name);
    this.meter.blockRead(found.bytes.length);
    return found.bytes;
  }

  hasRoomFor(sizeBytes: number): boolean {
    return sizeBytes <= this.index.maxSize * FILE_SHARE_MAX;
  }

  room(signal: AbortSignal): Promise<void> {
    return this.writer.room(signal);
  }

  keep(block: BlockKey, bytes: Uint8Array, { from = 0, buffer }: KeepOptions = {}): boolean {
    const { name } = this.deps.add(block, from, from + bytes.length);
    this.meter.blockKept(bytes.length);
    buffer?.retain();
    this.#remember(name, { bytes, buffer });
    const fits = diskBytesOf(fileBytesOf(bytes.length)) <= this.index.maxSize;
    if (!fits || this.index.has(name)) return fits;
    return this.writer.add({ name, path: filePath(this.root, name), bytes, buffer });
  }

  #remember(name: string, block: BlockInMemory): void {
    this.#inMemory.set(name, block, { size: block.bytes.length + MEMORY_OVERHEAD_BYTES });
  }

  forget(block: BlockKey): void {
    for (const { name } of this.deps.of(block)) {
      this.#inMemory.delete(name);
      this.writer.drop(name);
      this.index.delete(name);
    }
  }

  #partWith(block: BlockKey, at: number): BlockPart | undefined {
    return this.deps.of(block).find((part) => at >= part.from && at < part.to && this.#isThere(part));
  }

  #isThere({ name }: BlockPart): boolean {
    return this.#inMemory.has(name) || this.index.has(name) || this.writer.waiting(name) !== undefined;
  }

  close(): Promise<void> {
    return this.writer.close();
  }

  async #readDisk(
    { name, from, to }: BlockPart,
    start: number,
    end: number,
    into: Buffer | undefined,
  ): Promise<Buffer | undefined> {
    try {
      const file = await open(filePath(this.root, name));
      try {
        return await readBlockFile(file, name, to - from, { start: start - from, end: end - from }, into);
      } finally {
        await file.close();
      }
    } catch (failure) {
      if (failure instanceof DamagedFileError)
        this.log.warn('a cached block was damaged and is downloaded again', { block: name });
      if (!isOutOfHandles(failure)) this.index.delete(name);
      return undefined;
    }
  }
}

/** Returns bytes that the caller may keep: a buffer is used again. */
function readMemory(
  { bytes: all, buffer }: BlockInMemory,
  start: number,
  end: number,
  into: Buffer | undefined,
): Uint8Array {
  const bytes = all.subarray(start, end);
  if (!buffer) return bytes;
  if (!into) return Buffer.from(bytes);
  into.set(bytes);
  return into.subarray(0, bytes.length);
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

/** A block, or a part of it, that has a file of its own. */
interface BlockPart {
  readonly name: string;
  /** Offsets within the block. */
  readonly from: number;
  readonly to: number;
}

/** The parts of blocks that have been kept, which may be gone by now. Most blocks are kept whole and have none. */
class BlockDeps {
  /** By the block's name; without the whole block. */
  readonly #deps: LRUCache<string, readonly BlockPart[]>;

  constructor(blocksMax: number) {
    this.#deps = createLru(blocksMax);
  }

  /** Remembers and returns the part of `block` from `from` up to `to`. */
  add(block: BlockKey, from: number, to: number): BlockPart {
    const blockName = nameOf(block);
    if (from === 0 && to === block.sizeBytes) return { name: blockName, from, to };
    const part = { name: `${blockName}-${from.toString(16)}-${to.toString(16)}`, from, to };
    this.addFound(part);
    return part;
  }

  /** Remembers a part that an earlier run has kept. */
  addFound(part: BlockPart): void {
    const blockName = /^[0-9a-f]+-[0-9a-f]+/.exec(part.name)?.[0] ?? '';
    if (part.name === blockName) return;
    const known = this.#deps.get(blockName) ?? [];
    if (!known.some(({ name }) => name === part.name)) this.#deps.set(blockName, [...known, part]);
  }

  /** Returns the parts of `block` that may be cached. */
  of(block: BlockKey): readonly BlockPart[] {
    const name = nameOf(block);
    const whole = { name, from: 0, to: block.sizeBytes };
    const deps = this.#deps.get(name);
    return deps ? [whole, ...deps] : [whole];
  }
}

/** Names of blocks that were used lately: the hash takes longer than all the rest of finding a block in memory. */
const recentNames = createLru<string>(1_000);

/** Returns a hash of the key, and the block's size in hex, so that no file has to be opened at the start. */
function nameOf({ content, index, sizeBytes }: BlockKey): string {
  const key = `${index} ${content}`;
  let digest = recentNames.get(key);
  if (digest === undefined) {
    digest = hash('sha256', key).slice(0, 32);
    recentNames.set(key, digest);
  }
  return `${digest}-${sizeBytes.toString(16)}`;
}

const PART_NAME = /^[0-9a-f]{32}-([0-9a-f]{1,8})(?:-([0-9a-f]{1,8})-([0-9a-f]{1,8}))?$/;

/** Returns the part that the file of this name holds; `undefined` for a file that is not the cache's. */
function partOf(name: string): BlockPart | undefined {
  const [whole, size = '', from = '0', to = size] = PART_NAME.exec(name) ?? [];
  if (whole === undefined) return undefined;
  return { name, from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) };
}
