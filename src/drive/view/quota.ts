import type { Clock } from '../../util/clock.ts';
import { overlaid } from '../../util/overlaid.ts';
import { isWithin, type Path } from '../../util/path.ts';
import { sizeText } from '../../util/size-text.ts';
import { waitAtMost } from '../../util/wait.ts';
import { FileError } from '../errors.ts';
import type { Entry, Files, FreeSpace, WriteOptions } from '../files.ts';
import type { History } from '../history.ts';
import type { FolderSize, Growth } from './folder-size.ts';
import type { DriveLimit, ViewedDrive } from './mounts.ts';

/** How long a question for the free space waits for the size of the folder, in ms. */
const SHOWN_MS = 2_000;

/** Maximum size of a folder of a drive. */
export class Quota implements DriveLimit {
  constructor(
    private readonly size: FolderSize,
    private readonly bytesMax: number,
    private readonly clock: Clock,
  ) {}

  /** Returns `drive`, which refuses changes by which the folder would exceed the quota with `over-quota`. */
  limit(drive: ViewedDrive): ViewedDrive {
    const { files, history } = drive;
    const sizeAt = async (path: Path) => entrySize(files, await files.stat(path));
    /** Runs a change that puts what is at `from` in the place of what is at `to`. */
    const place = async <T>(from: Path, to: Path, work: () => Promise<T>): Promise<T> => {
      const before = await files.stat(to);
      const [sizeBytes, replacedBytes] = await Promise.all([sizeAt(from), entrySize(files, before)]);
      return this.#grow({ path: to, before, sizeBytes, addedBytes: sizeBytes - replacedBytes }, work);
    };
    const limitedFiles: Pick<Files, 'write' | 'copy' | 'move' | 'freeSpace'> = {
      write: (...how) => this.#write(files, ...how),
      copy: async (from, to, options) => {
        const work = () => files.copy(from, to, options);
        return options.shallow ? work() : place(from, to, work);
      },
      move: async (from, to, options) => {
        const work = () => files.move(from, to, options);
        return isWithin(from, this.size.folder) ? work() : place(from, to, work);
      },
      freeSpace: (signal, path) => this.#freeSpace(files, signal, path),
    };
    const limitedHistory: Pick<History, 'restore' | 'undelete'> = {
      restore: async (path, rev) => {
        const [before, { sizeBytes }] = await Promise.all([files.stat(path), history.version(path, rev)]);
        const addedBytes = sizeBytes - (before?.kind === 'file' ? before.sizeBytes : 0);
        return this.#grow({ path, before, sizeBytes, addedBytes }, () => history.restore(path, rev));
      },
      undelete: async (path) => {
        const sizeBytes = await deletedSize(history, path);
        const growth = { path, before: undefined, sizeBytes, addedBytes: sizeBytes };
        return this.#grow(growth, () => history.undelete(path));
      },
    };
    return { ...drive, files: overlaid(files, limitedFiles), history: overlaid(history, limitedHistory) };
  }

  async #write(
    files: Files,
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): ReturnType<Files['write']> {
    const before = await files.statForWrite(path, { isPinned: false }, signal);
    const replacedBytes = before?.kind === 'file' ? before.sizeBytes : 0;
    const { sizeBytes } = options;
    if (sizeBytes !== undefined)
      return this.#grow(
        { path, before, sizeBytes, addedBytes: sizeBytes - replacedBytes },
        () => files.write(path, body, options, signal),
        signal,
      );
    const growth: Growth = { path, before, sizeBytes: 0, addedBytes: 0 };
    const counted = this.#counted(body, growth, replacedBytes, signal);
    return this.size.during(growth, () => files.write(path, counted, options, signal));
  }

  /** Yields a body of unknown length, and throws as soon as it does not fit. */
  async *#counted(
    body: AsyncIterable<Uint8Array>,
    growth: Growth,
    replacedBytes: number,
    signal: AbortSignal | undefined,
  ): AsyncIterable<Uint8Array> {
    for await (const piece of body) {
      growth.sizeBytes += piece.length;
      const moreBytes = Math.max(0, growth.sizeBytes - replacedBytes) - growth.addedBytes;
      if (moreBytes > 0) await this.#admit(growth, moreBytes, signal);
      yield piece;
    }
  }

  /** Runs `work` unless it would exceed the quota; what makes the folder smaller is always allowed. */
  #grow<T>(growth: Growth, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { addedBytes } = growth;
    if (addedBytes <= 0) return work();
    const counted = { ...growth, addedBytes: 0 };
    return this.size.during(counted, async () => {
      await this.#admit(counted, addedBytes, signal);
      return work();
    });
  }

  /** Counts further bytes of a change. Throws `over-quota` if they do not fit. */
  async #admit(growth: Growth, moreBytes: number, signal: AbortSignal | undefined): Promise<void> {
    const { size } = this;
    const freeBytes = (usedBytes: number) => this.bytesMax - usedBytes - size.growingBytes;
    let usedBytes = await size.current(signal);
    // While the service is unavailable after a start, the size is unknown and nothing is refused.
    if (usedBytes !== undefined && moreBytes > freeBytes(usedBytes)) {
      usedBytes = await size.currentAnew(signal);
      if (moreBytes > freeBytes(usedBytes))
        throw new FileError(
          'over-quota',
          `the quota of ${sizeText(this.bytesMax)} is used up: there is no room for ${growth.path}, ` +
            `because ${sizeText(Math.max(0, freeBytes(usedBytes)))} are free; delete something first`,
        );
    }
    growth.addedBytes += moreBytes;
  }

  /** Returns the smaller one of what the quota and the account leave. */
  async #freeSpace(
    files: Files,
    signal: AbortSignal | undefined,
    path: Path | undefined,
  ): Promise<FreeSpace | undefined> {
    const { size } = this;
    const [ofAccount, usedBytes] = await Promise.all([
      files.freeSpace(signal, path),
      // Goes on in the background.
      waitAtMost(this.clock, SHOWN_MS, size.current(), () => size.lastBytes),
    ]);
    if (usedBytes === undefined) return undefined;
    const leftBytes = Math.max(0, this.bytesMax - usedBytes - size.growingBytes);
    return { usedBytes, availableBytes: Math.min(leftBytes, ofAccount?.availableBytes ?? leftBytes) };
  }
}

/** Returns the size of a file, or of everything in a folder. */
async function entrySize(files: Files, entry: Entry | undefined): Promise<number> {
  if (!entry) return 0;
  if (entry.kind === 'file') return entry.sizeBytes;
  let bytes = 0;
  for await (const { children } of files.walk(entry.path))
    for (const child of children) if (child.kind === 'file') bytes += child.sizeBytes;
  return bytes;
}

/** Returns the size of the file that was deleted at `path`. */
async function deletedSize(history: History, path: Path): Promise<number> {
  try {
    const { files, currentRev } = await history.versions(path);
    return currentRev === undefined ? (files[0]?.sizeBytes ?? 0) : 0;
  } catch (error) {
    // The service does not tell the size of a deleted folder, so it is restored while anything fits.
    if (error instanceof FileError && error.fault === 'is-a-folder') return 1;
    throw error;
  }
}
