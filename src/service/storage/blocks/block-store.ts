import { createHash } from 'node:crypto';
import PQueue from 'p-queue';
import type { ByteRange } from '../../../util/ranges.ts';
import { DamagedBlockError } from '../errors.ts';
import { type BlockPlace, hashIn, LostBlockError } from './block-place.ts';
import type { IncomingFile, IncomingFiles } from './incoming-files.ts';
import { haveChecksums, piecesAround } from './piece-checksums.ts';

/** The hash and size of a block, and its name in its place. */
export interface KnownBlock {
  readonly hash: Buffer;
  readonly sizeBytes: number;
  readonly name: string;
}

/** What the database knows of blocks. */
interface KnownNames {
  /** Whether the database is closed. `nameOf` cannot be called then. */
  readonly isClosed: boolean;
  /** Returns the name of a block that the database references, and which is durable; `undefined` for another. */
  nameOf(hash: Buffer): string | undefined;
}

/** Where blocks are. */
export type BlockPlaces = OwnPlaces | SharedPlace;

/** The places of a data directory. */
export interface OwnPlaces {
  readonly incoming: IncomingFiles;
  /** Its folder. A block there has its hash as its name. */
  readonly folder: BlockPlace;
  /** A bucket for all new blocks. Those that the folder has already stay there. */
  readonly outer?: BlockPlace | undefined;
}

/** The only place of services that share their blocks: a bucket, or a folder. */
interface SharedPlace {
  readonly incoming: IncomingFiles;
  readonly folder?: undefined;
  readonly outer: BlockPlace;
}

interface Pin {
  readonly name: string;
  count: number;
  /** Whether the block has been stored, or found good, since it was pinned. */
  isGood: boolean;
}

/** Blocks of one store that are read at the same time for uploads of equal bytes; each is in memory meanwhile. */
const VERIFIED_AT_ONCE = 4;

/**
 * The blocks that are not in the database. A block appears in its place complete or not at all. Every user of a block
 * pins its hash: a pinned block is not removed, whatever the database says. Changes of one hash's block run one after
 * another (`#busy`), so a removal never meets a new arrival.
 */
export class BlockStore {
  readonly #pins = new Map<string, Pin>();
  readonly #busy = new Map<string, Promise<unknown>>();
  readonly #verifications = new PQueue({ concurrency: VERIFIED_AT_ONCE });
  /** Whether an unneeded block may have stayed. All blocks then have to be examined. */
  hasLeftovers = false;

  constructor(
    private readonly places: BlockPlaces,
    private readonly known: KnownNames,
  ) {}

  /** Makes all places ready. */
  async prepare(): Promise<void> {
    const { incoming, folder, outer } = this.places;
    await incoming.prepare();
    await folder?.prepare();
    await outer?.prepare();
  }

  /** Yields the names of all blocks, perhaps among others. */
  async *names(): AsyncIterable<string> {
    const { folder, outer } = this.places;
    if (folder) yield* folder.names();
    if (outer) yield* outer.names();
  }

  /** Ends the use of the places. */
  async close(): Promise<void> {
    await this.places.outer?.close();
  }

  /**
   * Protects a block, present or future, from removal until `unpin` is called as often. Returns the name that it has, or will
   * have.
   */
  pin(hash: Buffer): string {
    const hex = hash.toString('hex');
    const pin = this.#pins.get(hex) ?? { name: this.#nameFor(hash, hex), count: 0, isGood: false };
    pin.count += 1;
    this.#pins.set(hex, pin);
    return pin.name;
  }

  #nameFor(hash: Buffer, hex: string): string {
    return (this.known.isClosed ? undefined : this.known.nameOf(hash)) ?? this.#newest.newName(hex);
  }

  unpin(hash: Buffer): void {
    const hex = hash.toString('hex');
    const pin = this.#pins.get(hex);
    if (!pin) return;
    pin.count -= 1;
    if (pin.count === 0) this.#pins.delete(hex);
  }

  /** Whether an upload is under way. */
  get hasPins(): boolean {
    return this.#pins.size > 0;
  }

  /** Creates a file for an incoming block. */
  createIncoming(): Promise<IncomingFile> {
    return this.places.incoming.create();
  }

  /** Closes and removes an incomplete file. May be called twice. */
  dropIncoming(incoming: IncomingFile): Promise<void> {
    return this.places.incoming.drop(incoming);
  }

  /**
   * Makes `incoming` the block of `hash`, which the caller has pinned, unless an equal one can be read. It is durable after
   * the next `sync`.
   */
  async keep({ hash, sizeBytes }: Omit<KnownBlock, 'name'>, incoming: IncomingFile): Promise<void> {
    const hex = hash.toString('hex');
    await this.#alone(hex, async () => {
      const pin = this.#pins.get(hex);
      if (!pin || pin.isGood || this.known.isClosed) return await this.dropIncoming(incoming);
      try {
        if (await this.#isThere({ hash, sizeBytes, name: pin.name })) await this.dropIncoming(incoming);
        else await this.#store(pin.name, incoming);
      } catch (failure) {
        await this.dropIncoming(incoming);
        throw failure;
      }
      pin.isGood = true;
    });
  }

  /**
   * Returns whether the database references the block, and its bytes are good. The row alone says nothing about bytes that
   * were lost since, perhaps before the start of the process.
   */
  async #isThere(block: KnownBlock): Promise<boolean> {
    if (this.known.nameOf(block.hash) !== block.name) return false;
    try {
      await this.#verifications.add(() => this.read(block));
      return true;
    } catch (failure) {
      if (failure instanceof DamagedBlockError) return false;
      throw failure;
    }
  }

  async #store(name: string, incoming: IncomingFile): Promise<void> {
    const place = this.#placeOf(name);
    try {
      await place.keep(name, incoming);
    } catch (failure) {
      // A bucket may have it nevertheless, or get it later.
      if (place.isRemote) this.hasLeftovers = true;
      throw failure;
    }
    // `sync` is for new blocks. One that goes elsewhere replaces a damaged one.
    if (place !== this.#newest) await place.sync();
  }

  /** Makes durable what was kept before the call. */
  sync(): Promise<void> {
    return this.#newest.sync();
  }

  /** Returns the verified bytes of a block, in `into` if given. Throws `DamagedBlockError`. */
  read(block: KnownBlock, into?: Buffer): Promise<Buffer> {
    return this.#checked(block, async (place) =>
      verified(block, await place.read(block.name, block.sizeBytes, into)),
    );
  }

  /** Returns a part of a block, verified by the block's `checksums`. Throws `DamagedBlockError`. */
  readPart(block: KnownBlock, part: ByteRange, checksums: Buffer): Promise<Buffer> {
    return this.#checked(block, async (place) => {
      const hex = block.hash.toString('hex');
      const { start, end } = piecesAround(part, block.sizeBytes);
      const bytes = await place.read(block.name, end - start, undefined, start);
      if (bytes.length !== end - start) throw new DamagedBlockError(hex, 'it is too short');
      if (!haveChecksums(bytes, start, checksums)) throw new DamagedBlockError(hex, 'its bytes have changed');
      return bytes.subarray(part.start - start, part.end - start);
    });
  }

  async #checked({ hash, name }: KnownBlock, read: (place: BlockPlace) => Promise<Buffer>): Promise<Buffer> {
    const place = this.#placeOf(name);
    try {
      return await read(place).catch((failure: unknown) => {
        if (!(failure instanceof DamagedBlockError) || !place.isRemote) throw failure;
        return read(place);
      });
    } catch (failure) {
      if (!(failure instanceof LostBlockError)) throw failure;
      throw new DamagedBlockError(hash.toString('hex'), failure.message);
    }
  }

  /** The place of new blocks. */
  get #newest(): BlockPlace {
    const { places } = this;
    return places.folder ? (places.outer ?? places.folder) : places.outer;
  }

  /** Returns where the block with this name is or will be. Throws `DamagedBlockError` if it is in a bucket that is not there. */
  #placeOf(name: string): BlockPlace {
    const { folder, outer } = this.places;
    const hash = hashIn(name) ?? name;
    if (name === hash && folder) return folder;
    if (!outer) throw new DamagedBlockError(hash, 'it is in a bucket, which was not given');
    return outer;
  }

  /** Returns whether the database or a pin references the block with this name. */
  isNeeded(name: string): boolean {
    const hash = hashIn(name);
    if (hash === undefined || this.known.isClosed || this.#pins.get(hash)?.name === name) return true;
    return this.known.nameOf(Buffer.from(hash, 'hex')) === name;
  }

  /** Removes the block with this name unless the database or a pin references it. */
  async remove(name: string): Promise<void> {
    await this.#alone(hashIn(name) ?? name, async () => {
      if (!this.isNeeded(name)) await this.#placeOf(name).remove(name);
    });
  }

  /** Like `remove`, but a failure is left to the next round of housekeeping. */
  async discard(name: string): Promise<void> {
    await this.remove(name).catch(() => {
      this.hasLeftovers = true;
    });
  }

  /** Runs `change` alone among the changes of this hash's block. */
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

/** Returns `bytes` if they are the block's. Throws `DamagedBlockError` otherwise. */
export function verified(block: Pick<KnownBlock, 'hash' | 'sizeBytes'>, bytes: Buffer): Buffer {
  const hex = block.hash.toString('hex');
  if (bytes.length !== block.sizeBytes)
    throw new DamagedBlockError(hex, `it has ${bytes.length} bytes instead of ${block.sizeBytes}`);
  if (!createHash('sha256').update(bytes).digest().equals(block.hash))
    throw new DamagedBlockError(hex, 'its bytes have changed');
  return bytes;
}
