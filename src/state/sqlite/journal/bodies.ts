import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { ContentHasher } from '../../../util/content-hash.ts';
import type { ByteRange } from '../../../util/ranges.ts';
import { BodyGone, JournalFull, type StagedBody } from '../../journal.ts';
import { DirectorySync } from './directory-sync.ts';

/** A body up to this size is kept in the database, where its record's fsync is its own. */
const SMALL_BYTES_MAX = 64 * 1024;

/**
 * What is left of the disk: without room for a few more records none could be crossed out either, and the
 * journal would stay as full as it is.
 */
const RESERVED_BYTES = 16 * 1024 * 1024;

/** How much is taken between two looks at the disk: less than what is reserved. */
const LOOK_EVERY_BYTES = 4 * 1024 * 1024;

/** As `StagedBody`: in memory, or in a file that is on disk. */
export interface Staged extends StagedBody {
  readonly small?: Buffer;
  readonly file?: string;
}

/** The bodies of pending writes that are too large for the database, each in a file. */
export class Bodies {
  readonly #sync: DirectorySync;
  /** Taken since the disk was looked at. */
  #unseenBytes = LOOK_EVERY_BYTES;

  private constructor(private readonly directory: string) {
    this.#sync = new DirectorySync(directory);
  }

  static async open(directory: string): Promise<Bodies> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    return new Bodies(directory);
  }

  pathOf(file: string): string {
    return join(this.directory, file);
  }

  async stage(body: AsyncIterable<Uint8Array>): Promise<Staged> {
    const hasher = new ContentHasher();
    let sizeBytes = 0;
    let first: Uint8Array[] = [];
    let large: LargeBody | undefined;
    try {
      await this.#requireRoom(0);
      for await (const piece of body) {
        hasher.update(piece);
        sizeBytes += piece.byteLength;
        await this.#requireRoom(piece.byteLength);
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

  async remove(files: readonly string[]): Promise<void> {
    // What stays because of a failure is removed at the next start.
    await Promise.allSettled(files.map((file) => rm(this.pathOf(file), { force: true })));
  }

  /** Removes what no record names: bodies that never became part of a write, or whose write has landed. */
  async sweep(named: ReadonlySet<string>): Promise<void> {
    const orphans = (await readdir(this.directory)).filter((file) => !named.has(file));
    await this.remove(orphans);
  }

  async #requireRoom(takenBytes: number): Promise<void> {
    this.#unseenBytes += takenBytes;
    if (this.#unseenBytes < LOOK_EVERY_BYTES) return;
    const { bavail, bsize } = await statfs(this.directory);
    // A full disk is looked at again each time.
    if (bavail * bsize < RESERVED_BYTES) throw new JournalFull(DISK_FULL);
    this.#unseenBytes = 0;
  }

  async *read(file: string, range?: ByteRange): AsyncIterable<Uint8Array> {
    const stream = createReadStream(this.pathOf(file), range && { start: range.start, end: range.end - 1 });
    try {
      for await (const piece of stream) yield piece;
    } catch (error) {
      throw codeOf(error) === 'ENOENT'
        ? new BodyGone(`${file} is not there any more`, { cause: error })
        : error;
    }
  }
}

const DISK_FULL = "the disk with davgate's data directory is full";

class LargeBody {
  private constructor(
    readonly name: string,
    private readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  static async create(directory: string, first: readonly Uint8Array[]): Promise<LargeBody> {
    const name = randomUUID();
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

/** `error`, or `JournalFull` when it says that the disk is. */
export function asFull(error: unknown): unknown {
  const isFull = ['ENOSPC', 'EDQUOT', 'SQLITE_FULL'].includes(codeOf(error) ?? codeOf(causeOf(error)) ?? '');
  return isFull ? new JournalFull(DISK_FULL, { cause: error }) : error;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
