import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { ByteRange } from '../../../util/ranges.ts';
import { codeOf, DamagedBlockError } from '../errors.ts';
import type { Disk, DiskFile } from './disk.ts';
import { haveChecksums, PieceChecksums, piecesAround } from './piece-checksums.ts';

/**
 * Maximum size of a block in SQLite, in bytes. Many small blocks share one fsync of its log; larger ones are files,
 * because SQLite would write them twice (log and main file).
 */
const INLINE_BYTES_MAX = 64 * 1024;

/** Bytes gathered before a write to a file: one system call for many network chunks. */
const FLUSH_BYTES = 1024 * 1024;

/** Chunks gathered before they are written or joined, which limits the heap that a slow sender's tiny chunks take. */
const FLUSH_CHUNKS = 512;

/** A block that survives a crash after the next `sync`, or whose bytes are in memory. */
export interface StagedBlock {
  readonly hash: Buffer;
  readonly sizeBytes: number;
  /** Present for a block small enough for SQLite. */
  readonly bytes?: Buffer;
  /** The checksums of its pieces; present for a block that is a file. */
  readonly pieces?: Buffer;
}

/** The hash and size of a stored block. */
export interface KnownBlock {
  readonly hash: Buffer;
  readonly sizeBytes: number;
}

/**
 * The files of blocks: `blocks/<sha256>`, all in one folder so that one fsync of it makes all recent renames durable. A
 * file appears there complete or not at all. Every user of a block pins its hash: a pinned file is not removed,
 * whatever the database says. Changes of one hash's file run one after another (`#busy`), so a removal never meets a
 * new arrival.
 */
export class BlockFiles {
  readonly #folder: string;
  readonly #incoming: string;
  readonly #pins = new Map<string, number>();
  readonly #busy = new Map<string, Promise<unknown>>();
  /** Pinned hashes whose file is in its folder. */
  readonly #placed = new Set<string>();
  /** Hashes found damaged since the start; the next upload of the same bytes replaces the file. */
  readonly #damaged = new Set<string>();
  /** Whether the removal of an unneeded file has failed. All files then have to be examined. */
  hasLeftovers = false;
  #incomingCount = 0;
  #syncing: Promise<void> | undefined;
  #nextSync: Promise<void> | undefined;

  constructor(
    private readonly dataDirectory: string,
    private readonly disk: Disk,
    /** Returns whether the database references this block as a file, which is then durable. */
    private readonly isStored: (hash: Buffer) => boolean,
  ) {
    this.#folder = join(dataDirectory, 'blocks');
    this.#incoming = join(dataDirectory, 'incoming');
  }

  /** Creates the folders and removes incomplete files. */
  async prepare(): Promise<void> {
    await this.disk.makeFolder(this.#folder);
    await this.disk.makeFolder(this.#incoming);
    await this.disk.syncFolder(this.dataDirectory);
    for await (const name of this.disk.names(this.#incoming))
      await this.disk.remove(join(this.#incoming, name));
  }

  /** Yields the hashes of all files, in hex. */
  hashes(): AsyncIterable<string> {
    return this.disk.names(this.#folder);
  }

  /** Protects the file of a hash, present or future, from removal until `unpin` is called as often. */
  pin(hash: string): void {
    this.#pins.set(hash, (this.#pins.get(hash) ?? 0) + 1);
  }

  unpin(hash: string): void {
    const left = (this.#pins.get(hash) ?? 1) - 1;
    if (left > 0) return void this.#pins.set(hash, left);
    this.#pins.delete(hash);
    this.#placed.delete(hash);
  }

  /** Whether an upload is under way. */
  get hasPins(): boolean {
    return this.#pins.size > 0;
  }

  /** Creates a file for an incoming block. */
  createIncoming(): Promise<IncomingFile> {
    const path = join(this.#incoming, String(this.#incomingCount++));
    return this.disk.create(path).then((file) => ({ path, file }));
  }

  /** Closes and removes an incomplete file; after a failure the next start removes it. May be called twice. */
  async dropIncoming(incoming: IncomingFile): Promise<void> {
    await incoming.file.close().catch(() => undefined);
    await this.disk.remove(incoming.path).catch(() => undefined);
  }

  /** Makes `incoming` the file of `hash`, which the caller has pinned. It is durable after the next `sync`. */
  async place(hash: Buffer, incoming: IncomingFile): Promise<void> {
    const hex = hash.toString('hex');
    await this.#alone(hex, async () => {
      if (this.#isWhole(hash, hex)) return await this.dropIncoming(incoming);
      try {
        await incoming.file.sync();
        await incoming.file.close();
        await this.disk.rename(incoming.path, join(this.#folder, hex));
      } catch (failure) {
        await this.dropIncoming(incoming);
        throw failure;
      }
      this.#placed.add(hex);
      this.#damaged.delete(hex);
    });
  }

  /** Returns whether the file exists already; the new one is equal then and need not be made durable. */
  #isWhole(hash: Buffer, hex: string): boolean {
    return this.#placed.has(hex) || (this.isStored(hash) && !this.#damaged.has(hex));
  }

  /** Resolves when everything placed before the call is durable; simultaneous callers share one fsync. */
  sync(): Promise<void> {
    if (!this.#syncing) return this.#startSync();
    // The sync under way may have begun before the caller's rename: wait for one that begins after it.
    this.#nextSync ??= this.#syncing.then(
      () => this.#startSync(),
      () => this.#startSync(),
    );
    return this.#nextSync;
  }

  /** Begins a sync of the folder; calls during it wait for the next one. */
  #startSync(): Promise<void> {
    this.#nextSync = undefined;
    this.#syncing = this.disk.syncFolder(this.#folder).finally(() => {
      this.#syncing = undefined;
    });
    return this.#syncing;
  }

  /** Returns the verified bytes of a block's file, in `into` if given. Throws `DamagedBlockError`. */
  read(block: KnownBlock, into?: Buffer): Promise<Buffer> {
    return this.#noteDamage(block, async (path) =>
      verified(block, await this.disk.read(path, block.sizeBytes, into)),
    );
  }

  /** Returns a part of a block's file, verified by the block's `checksums`. Throws `DamagedBlockError`. */
  readPart(block: KnownBlock, part: ByteRange, checksums: Buffer): Promise<Buffer> {
    return this.#noteDamage(block, async (path, hex) => {
      const { start, end } = piecesAround(part, block.sizeBytes);
      const bytes = await this.disk.read(path, end - start, undefined, start);
      if (bytes.length !== end - start) throw new DamagedBlockError(hex, 'its file is too short');
      if (!haveChecksums(bytes, start, checksums)) throw new DamagedBlockError(hex, 'its bytes have changed');
      return bytes.subarray(part.start - start, part.end - start);
    });
  }

  /** Reads the file of a block. One that is found damaged is replaced by the next upload of the same bytes. */
  async #noteDamage(
    { hash }: KnownBlock,
    read: (path: string, hex: string) => Promise<Buffer>,
  ): Promise<Buffer> {
    const hex = hash.toString('hex');
    try {
      return await read(join(this.#folder, hex), hex);
    } catch (failure) {
      const why = DAMAGE[codeOf(failure)];
      if (!why && !(failure instanceof DamagedBlockError)) throw failure;
      this.#damaged.add(hex);
      throw why ? new DamagedBlockError(hex, why) : failure;
    }
  }

  /** Returns whether the database or a pin references the file of a hash. */
  isNeeded(hash: string): boolean {
    return this.#pins.has(hash) || this.isStored(Buffer.from(hash, 'hex'));
  }

  /** Removes the file of a block unless the database or a pin references it. */
  async remove(hash: string): Promise<void> {
    await this.#alone(hash, async () => {
      if (this.isNeeded(hash)) return;
      await this.disk.remove(join(this.#folder, hash));
    });
  }

  /** Like `remove`, but a failure is left to the next round of housekeeping. */
  async discard(hash: string): Promise<void> {
    await this.remove(hash).catch(() => {
      this.hasLeftovers = true;
    });
  }

  /** Runs `change` alone among the changes of this hash's file. */
  async #alone(hash: string, change: () => Promise<void>): Promise<void> {
    const before = this.#busy.get(hash) ?? Promise.resolve();
    const run = before.then(change, change);
    this.#busy.set(hash, run);
    try {
      await run;
    } finally {
      if (this.#busy.get(hash) === run) this.#busy.delete(hash);
    }
  }
}

/** Error codes of the file system that mean lost bytes. */
const DAMAGE: Readonly<Record<string, string>> = {
  ENOENT: 'its file is missing',
  EIO: 'the disk cannot read it',
};

export interface IncomingFile {
  readonly path: string;
  readonly file: DiskFile;
}

/** Returns `bytes` if they are the block's. Throws `DamagedBlockError` otherwise. */
export function verified(block: KnownBlock, bytes: Buffer): Buffer {
  const hex = block.hash.toString('hex');
  if (bytes.length !== block.sizeBytes)
    throw new DamagedBlockError(hex, `it has ${bytes.length} bytes instead of ${block.sizeBytes}`);
  if (!createHash('sha256').update(bytes).digest().equals(block.hash))
    throw new DamagedBlockError(hex, 'its bytes have changed');
  return bytes;
}

/** Writes one block while its bytes arrive. */
export class BlockWriter {
  readonly #hash = createHash('sha256');
  readonly #pieces = new PieceChecksums();
  #chunks: Uint8Array[] = [];
  #gatheredBytes = 0;
  #incoming: IncomingFile | undefined;
  sizeBytes = 0;

  constructor(private readonly files: BlockFiles) {}

  /** Adds bytes. Keeps a reference to `chunk`, which must not change afterwards. */
  async add(chunk: Uint8Array): Promise<void> {
    this.#hash.update(chunk);
    this.#pieces.add(chunk);
    this.#chunks.push(chunk);
    this.#gatheredBytes += chunk.length;
    this.sizeBytes += chunk.length;
    if (this.#gatheredBytes >= FLUSH_BYTES) await this.#flush();
    else if (this.#chunks.length >= FLUSH_CHUNKS) {
      if (this.sizeBytes > INLINE_BYTES_MAX) await this.#flush();
      else this.#chunks = [Buffer.concat(this.#chunks)];
    }
  }

  /** Returns the staged block, pinned by its hash if it is a file. `place` resolves when the file is in its folder. */
  finish(): { readonly block: StagedBlock; readonly place: Promise<void> } {
    const hash = this.#hash.digest();
    const { sizeBytes } = this;
    if (sizeBytes <= INLINE_BYTES_MAX)
      return { block: { hash, sizeBytes, bytes: Buffer.concat(this.#chunks) }, place: Promise.resolve() };
    this.files.pin(hash.toString('hex'));
    return { block: { hash, sizeBytes, pieces: this.#pieces.finish() }, place: this.#place(hash) };
  }

  /** Discards the written bytes. */
  async abandon(): Promise<void> {
    if (this.#incoming) await this.files.dropIncoming(this.#incoming);
  }

  /** Writes the bytes and renames the file; removes it on failure. */
  async #place(hash: Buffer): Promise<void> {
    try {
      await this.#flush();
    } catch (failure) {
      await this.abandon();
      throw failure;
    }
    if (this.#incoming) await this.files.place(hash, this.#incoming);
  }

  /** Writes the gathered bytes to the file. Never called for a block that stays small. */
  async #flush(): Promise<void> {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#gatheredBytes = 0;
    this.#incoming ??= await this.files.createIncoming();
    await this.#incoming.file.append(chunks);
  }
}
