import { randomUUID } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ContentHasher } from '../../../util/content-hash.ts';
import { errorCodeOf } from '../../../util/error-code.ts';
import { makeFolder } from '../../../util/make-folder.ts';
import type { ByteRange } from '../../../util/ranges.ts';
import { DirectorySync } from '../../directory-sync.ts';
import { asFull, DiskRoom } from '../../disk-room.ts';
import { BodyGone, type PendingWrite, type StagedBody } from '../../journal.ts';
import { nameFor } from './lost-and-found.ts';

/** Maximum size of a body in the database, in bytes; it shares the fsync of its record. */
const SMALL_BYTES_MAX = 64 * 1024;

/**
 * Free disk space that the journal leaves, in bytes. Without room for a few more records no write could be removed, and
 * the journal would stay full.
 */
const RESERVED_BYTES = 16 * 1024 * 1024;

/** Suffix of a file whose write has no record yet: an upload in progress, or one that a kill interrupted. */
const STAGED_SUFFIX = '.staged';

const ID_PATTERN = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

/** Returns the name under which the body called `file` was staged. */
export function stagedNameOf(file: string): string {
  return `${ID_PATTERN.exec(file)?.[0] ?? file}${STAGED_SUFFIX}`;
}

export function isStagedName(file: string): boolean {
  return file.endsWith(STAGED_SUFFIX);
}

/**
 * Returns the lasting name of the body of `write` that is staged as `staged`; it contains the time, id and name of the
 * write.
 */
export function lastingNameOf(staged: string, write: PendingWrite): string {
  return nameFor({ ...write, id: staged.slice(0, -STAGED_SUFFIX.length) });
}

/** A staged body in memory, or in a file whose bytes are on disk. */
export interface Staged extends StagedBody {
  readonly small?: Buffer;
  readonly file?: string;
}

/** The bodies of a drive's pending writes that are too large for the database, each in a file. */
export class Bodies {
  readonly #sync: DirectorySync;
  readonly #room: DiskRoom;

  private constructor(private readonly directory: string) {
    this.#sync = new DirectorySync(directory);
    this.#room = new DiskRoom(directory, RESERVED_BYTES);
  }

  static async open(directory: string): Promise<Bodies> {
    makeFolder(directory);
    return new Bodies(directory);
  }

  /** Returns the path of the body called `file`, which still has its staged name when `settle` has failed. */
  pathOf(file: string): string {
    const staged = this.#at(stagedNameOf(file));
    return statSync(staged, { throwIfNoEntry: false }) ? staged : this.#at(file);
  }

  async stage(body: AsyncIterable<Uint8Array>): Promise<Staged> {
    const hasher = new ContentHasher();
    let sizeBytes = 0;
    let first: Uint8Array[] = [];
    let large: LargeBody | undefined;
    try {
      await this.#room.require(0);
      for await (const piece of body) {
        hasher.update(piece);
        sizeBytes += piece.byteLength;
        await this.#room.require(piece.byteLength);
        if (!large && sizeBytes > SMALL_BYTES_MAX) large = await LargeBody.create(this.directory, first);
        if (large) {
          first = [];
          await large.write(piece);
        } else first.push(Buffer.from(piece));
      }
      const staged = { sizeBytes, contentHash: hasher.digest() };
      if (!large) return { ...staged, small: Buffer.concat(first) };
      await large.finish();
      await this.#sync.run();
      return { ...staged, file: large.name };
    } catch (error) {
      await large?.discard();
      throw asFull(error);
    }
  }

  async discard({ file }: Staged): Promise<void> {
    if (file !== undefined) await this.remove([file]);
  }

  /** Renames the body of an accepted write to its lasting name. If that fails, the next start tries it again. */
  async settle(file: string): Promise<void> {
    await rename(this.#at(stagedNameOf(file)), this.#at(file)).catch(() => {});
  }

  /** Removes files. Resolves with those that no longer exist. */
  async remove(files: readonly string[]): Promise<readonly string[]> {
    const removals = files.map(async (file) => {
      for (const name of [file, stagedNameOf(file)]) await rm(this.#at(name), { force: true });
      return file;
    });
    const outcomes = await Promise.allSettled(removals);
    return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
  }

  async *read(file: string, range?: ByteRange): AsyncIterable<Uint8Array> {
    const stream = createReadStream(this.pathOf(file), range && { start: range.start, end: range.end - 1 });
    try {
      for await (const piece of stream) yield piece;
    } catch (error) {
      throw errorCodeOf(error) === 'ENOENT'
        ? new BodyGone(`${file} no longer exists`, { cause: error })
        : error;
    }
  }

  #at(name: string): string {
    return join(this.directory, name);
  }
}

class LargeBody {
  private constructor(
    readonly name: string,
    private readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  static async create(directory: string, first: readonly Uint8Array[]): Promise<LargeBody> {
    const name = `${randomUUID()}${STAGED_SUFFIX}`;
    const path = join(directory, name);
    const body = new LargeBody(name, path, await open(path, 'wx', 0o600));
    try {
      for (const piece of first) await body.write(piece);
      return body;
    } catch (error) {
      await body.discard();
      throw error;
    }
  }

  async write(piece: Uint8Array): Promise<void> {
    for (let offset = 0; offset < piece.byteLength; )
      offset += (await this.handle.write(piece, offset)).bytesWritten;
  }

  async finish(): Promise<void> {
    await this.handle.sync();
    await this.handle.close();
  }

  async discard(): Promise<void> {
    await this.handle.close().catch(() => {});
    await rm(this.path, { force: true });
  }
}
