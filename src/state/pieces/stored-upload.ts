import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCodeOf } from '../../util/error-code.ts';
import { DirectorySync } from '../directory-sync.ts';

/** Suffix of a piece that is not on the disk completely. */
const ARRIVING_SUFFIX = '.arriving';

/** Size of the pieces in which the disk is read, in bytes. */
const READ_BYTES = 256 * 1024;

/** A part of a file, whose bytes are on the disk. */
export interface Piece {
  readonly name: string;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly storedMs: number;
}

/** The pieces of a file that has not been put together yet. */
export interface UnfinishedUpload {
  /** The name that the client has given it. */
  readonly id: string;
  readonly pieces: ReadonlyMap<string, Piece>;
  /** When it was changed last, in ms since 1970. */
  readonly changedMs: number;
}

/** An upload in a folder of its own, each piece in a file. A resolved promise means that the change is on the disk. */
export class StoredUpload implements UnfinishedUpload {
  readonly pieces = new Map<string, Piece>();
  /** Size of the pieces, in bytes. */
  storedBytes = 0;
  /** Size of what has arrived of other pieces, in bytes. */
  arrivingBytes = 0;
  readonly #sync: DirectorySync;

  private constructor(
    readonly id: string,
    readonly directory: string,
    public changedMs: number,
  ) {
    this.#sync = new DirectorySync(directory);
  }

  /** Makes the upload's folder in `userFolder`, or takes the one that is there. */
  static async create(id: string, userFolder: string, nowMs: number): Promise<StoredUpload> {
    const directory = directoryOf(id, userFolder);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // The user's folder and that of all users may be new too.
    for (const folder of [userFolder, dirname(userFolder), dirname(dirname(userFolder))])
      await new DirectorySync(folder).run();
    return new StoredUpload(id, directory, nowMs);
  }

  /** Returns the upload in the folder `name` of an earlier run, without the pieces that a kill has cut off. */
  static async load(name: string, userFolder: string): Promise<StoredUpload> {
    const directory = join(userFolder, name);
    const { mtimeMs } = await stat(directory);
    const upload = new StoredUpload(decodeURIComponent(name), directory, Math.floor(mtimeMs));
    for (const piece of await namesIn(directory)) {
      const path = join(directory, piece);
      if (piece.endsWith(ARRIVING_SUFFIX)) await rm(path);
      else await stat(path).then(({ size, mtimeMs }) => upload.#put(piece, size, Math.floor(mtimeMs)));
    }
    return upload;
  }

  /** Stores a piece, in place of one of the same name. Keeps nothing of it when `body` or the disk fails. */
  async write(name: string, body: AsyncIterable<Uint8Array>, now: () => number): Promise<void> {
    const path = join(this.directory, randomUUID() + ARRIVING_SUFFIX);
    try {
      const sizeBytes = await writeSynced(path, body);
      await rename(path, join(this.directory, name));
      this.#put(name, sizeBytes, now());
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    await this.#sync.run();
  }

  /** Yields the bytes of these pieces one after the other. */
  async *read(pieces: readonly Piece[]): AsyncGenerator<Uint8Array> {
    for (const { name } of pieces)
      yield* createReadStream(join(this.directory, name), { highWaterMark: READ_BYTES });
  }

  #put(name: string, sizeBytes: number, storedMs: number): void {
    this.storedBytes += sizeBytes - (this.pieces.get(name)?.sizeBytes ?? 0);
    this.pieces.set(name, { name, sizeBytes, storedMs });
    this.changedMs = Math.max(this.changedMs, storedMs);
  }
}

/** Returns the folder of the upload `id`. */
export function directoryOf(id: string, userFolder: string): string {
  return join(userFolder, encodeURIComponent(id));
}

/** Writes all of `body` into a new file, whose bytes are on the disk afterwards. Returns their number. */
async function writeSynced(path: string, body: AsyncIterable<Uint8Array>): Promise<number> {
  const handle = await open(path, 'wx', 0o600);
  let sizeBytes = 0;
  try {
    for await (const bytes of body) {
      for (let done = 0; done < bytes.length; ) done += (await handle.write(bytes, done)).bytesWritten;
      sizeBytes += bytes.length;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  return sizeBytes;
}

/** Returns the names in a folder; none if there is no such folder. */
export async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
