import { createHash, randomUUID } from 'node:crypto';
import { rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { sizeText } from '../../util/size-text.ts';
import { asFull, DiskRoom } from '../disk-room.ts';
import { directoryOf, namesIn, type Piece, StoredUpload, type UnfinishedUpload } from './stored-upload.ts';

/** How long an unfinished upload is kept after its last change, in ms, as in Nextcloud. */
const KEPT_MS = 24 * 3_600_000;

/** Interval between two searches for uploads that were given up, in ms. */
const COLLECT_EVERY_MS = 3_600_000;

/** Free disk space that pieces leave, in bytes: more than the journal and the databases need to go on. */
const RESERVED_BYTES = 32 * 1024 * 1024;

/** Prefix of an upload that is being removed. */
const REMOVED_PREFIX = 'removed-';

export interface PieceLimits {
  /** Maximum size of all pieces of one user, in bytes. */
  readonly bytesOfUserMax: number;
  /** Maximum number of unfinished uploads of one user. */
  readonly uploadsOfUserMax: number;
  /** Maximum number of pieces of one upload, as in Nextcloud. */
  readonly piecesMax: number;
}

const PIECE_LIMITS: PieceLimits = {
  bytesOfUserMax: 100 * 1024 ** 3,
  uploadsOfUserMax: 200,
  piecesMax: 10_000,
};

/** The user has reached a limit for unfinished uploads; `message` says which and what to do. */
export class TooManyPieces extends Error {
  override readonly name = 'TooManyPieces';
}

/** There is no such upload, or it was removed while a piece of it arrived. */
export class UploadRemoved extends Error {
  override readonly name = 'UploadRemoved';
}

export interface PieceStoreOptions {
  /** Directory of the pieces alone. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: Partial<PieceLimits>;
}

/** The uploads of one user by their ids. */
type Uploads = Map<string, StoredUpload>;

/**
 * The pieces of unfinished uploads of all users, each in a file: `USER/UPLOAD/PIECE`. A resolved promise means that the
 * change is on the disk and survives a kill. An upload that was not changed for a day is removed.
 */
export class PieceStore {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #limits: PieceLimits;
  readonly #room: DiskRoom;
  /** By the name of the user's folder. */
  readonly #users = new Map<string, Uploads>();
  /** Removals that have not taken the folder of the upload away, by the folder. */
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  #collecting: Promise<void> = Promise.resolve();

  private constructor({ directory, clock, log, limits }: PieceStoreOptions) {
    this.#directory = directory;
    this.#clock = clock;
    this.#log = log;
    this.#limits = { ...PIECE_LIMITS, ...limits };
    this.#room = new DiskRoom(directory, RESERVED_BYTES);
  }

  /** Finds the pieces of earlier runs. Never throws: without them, clients send their files again. */
  static async open(options: PieceStoreOptions): Promise<PieceStore> {
    const store = new PieceStore(options);
    try {
      await store.#load();
      await store.#collect();
    } catch (error) {
      options.log.warn('cannot read the pieces of unfinished uploads', { reason: String(error) });
    }
    store.#collecting = store.#collectForever(store.#stop.signal);
    return store;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#collecting;
  }

  uploadsOf(user: string): readonly UnfinishedUpload[] {
    return [...(this.#users.get(folderOf(user))?.values() ?? [])];
  }

  upload(user: string, id: string): UnfinishedUpload | undefined {
    return this.#users.get(folderOf(user))?.get(id);
  }

  /** Begins an upload, unless it exists. Throws `TooManyPieces`, `JournalFull`. */
  async create(user: string, id: string): Promise<void> {
    const uploads: Uploads = this.#users.get(folderOf(user)) ?? new Map();
    if (uploads.has(id)) return;
    const { uploadsOfUserMax } = this.#limits;
    if (uploads.size >= uploadsOfUserMax)
      throw new TooManyPieces(
        `you have ${uploadsOfUserMax} unfinished uploads, the maximum; finish or delete some, or wait a day`,
      );
    this.#users.set(folderOf(user), uploads);
    try {
      const folder = join(this.#directory, folderOf(user));
      // Otherwise the folder of a removed upload with this id would be taken, and go away with it.
      await this.#leaving.get(directoryOf(id, folder));
      const upload = await StoredUpload.create(id, folder, this.#clock.now());
      if (!uploads.has(id)) uploads.set(id, upload);
    } catch (error) {
      throw asFull(error);
    }
  }

  /**
   * Stores a piece, in place of one of the same name. Returns whether it is new. Throws `TooManyPieces`, `JournalFull`,
   * `UploadRemoved` or the error of `body`, and then keeps nothing of it.
   */
  async add(user: string, id: string, name: string, body: AsyncIterable<Uint8Array>): Promise<boolean> {
    const uploads: Uploads = this.#users.get(folderOf(user)) ?? new Map();
    const upload = uploads.get(id);
    if (!upload) throw new UploadRemoved(id);
    const isNew = !upload.pieces.has(name);
    const { piecesMax } = this.#limits;
    if (isNew && upload.pieces.size >= piecesMax)
      throw new TooManyPieces(`the upload has ${piecesMax} pieces, the maximum; send larger ones`);
    const arrival: Arrival = { upload, sizeBytes: 0 };
    try {
      await upload.write(name, this.#counted(uploads, arrival, body), () => this.#clock.now());
      return isNew;
    } catch (error) {
      if (uploads.get(id) !== upload) throw new UploadRemoved(id, { cause: error });
      throw asFull(error);
    } finally {
      upload.arrivingBytes -= arrival.sizeBytes;
    }
  }

  /** Yields the bytes of these pieces one after the other. */
  async *read(user: string, id: string, pieces: readonly Piece[]): AsyncGenerator<Uint8Array> {
    const upload = this.#users.get(folderOf(user))?.get(id);
    if (!upload) throw new UploadRemoved(id);
    // So that its day does not end meanwhile.
    upload.changedMs = this.#clock.now();
    yield* upload.read(pieces);
  }

  /** Removes an upload with its pieces. */
  async remove(user: string, id: string): Promise<void> {
    await this.#remove(folderOf(user), id);
  }

  async #remove(userFolder: string, id: string): Promise<void> {
    const uploads = this.#users.get(userFolder);
    const upload = uploads?.get(id);
    if (!upload) return;
    uploads?.delete(id);
    // In one step, so that no piece that arrives meanwhile can come into a folder that is being removed.
    const removed = join(this.#directory, REMOVED_PREFIX + randomUUID());
    const { directory } = upload;
    const isMoved = rename(directory, removed);
    const isOver = isMoved.catch(() => undefined).finally(() => this.#leaving.delete(directory));
    this.#leaving.set(directory, isOver);
    await isMoved;
    await rm(removed, { recursive: true, force: true });
  }

  /** Yields `body`, whose bytes count for the user as they arrive. Throws `TooManyPieces`, `JournalFull`. */
  async *#counted(
    uploads: Uploads,
    arrival: Arrival,
    body: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    const { bytesOfUserMax } = this.#limits;
    await this.#room.require(0);
    for await (const bytes of body) {
      if (bytesIn(uploads) + bytes.length > bytesOfUserMax)
        throw new TooManyPieces(
          `your unfinished uploads have ${sizeText(bytesOfUserMax)}, the maximum; finish or delete some, or wait a day`,
        );
      arrival.sizeBytes += bytes.length;
      arrival.upload.arrivingBytes += bytes.length;
      await this.#room.require(bytes.length);
      yield bytes;
    }
  }

  async #load(): Promise<void> {
    for (const userFolder of await namesIn(this.#directory)) {
      const folder = join(this.#directory, userFolder);
      if (userFolder.startsWith(REMOVED_PREFIX)) {
        await rm(folder, { recursive: true, force: true });
        continue;
      }
      const uploads: Uploads = new Map();
      for (const name of await namesIn(folder)) {
        const upload = await StoredUpload.load(name, folder);
        uploads.set(upload.id, upload);
      }
      if (uploads.size > 0) this.#users.set(userFolder, uploads);
      else await rmdir(folder);
    }
  }

  async #collectForever(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.#clock.sleep(COLLECT_EVERY_MS, stop).catch(() => {});
      if (stop.aborted) return;
      await this.#collect().catch((error) =>
        this.#log.warn('cannot remove unfinished uploads', { reason: String(error) }),
      );
    }
  }

  /** Removes the uploads that were given up. */
  async #collect(): Promise<void> {
    const nowMs = this.#clock.now();
    for (const [userFolder, uploads] of this.#users)
      for (const { id, changedMs, arrivingBytes } of [...uploads.values()])
        if (arrivingBytes === 0 && nowMs - changedMs >= KEPT_MS) await this.#remove(userFolder, id);
  }
}

/** A piece that is being received. */
interface Arrival {
  readonly upload: StoredUpload;
  sizeBytes: number;
}

function bytesIn(uploads: Uploads): number {
  let bytes = 0;
  for (const { storedBytes, arrivingBytes } of uploads.values()) bytes += storedBytes + arrivingBytes;
  return bytes;
}

/** Returns the name of a user's folder. User names may contain any characters, and be longer than the name of a file. */
function folderOf(user: string): string {
  return createHash('sha256').update(user).digest('hex');
}
