import type { Path } from '../util/path.ts';

/** A small file of a desktop system, which is kept on this machine and never sent to the service. */
export interface LocalFile {
  readonly path: Path;
  readonly id: string;
  readonly rev: string;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
}

/** Maximum size of a local file, in bytes. AppleDouble files with a resource fork are the largest seen. */
export const LOCAL_FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Maximum size of all local files of a drive, in bytes. Beyond it the oldest are removed. */
export const LOCAL_FILES_BYTES_MAX = 1024 * 1024 * 1024;

/** A local file is larger than `LOCAL_FILE_BYTES_MAX`; nothing of it is stored. */
export class LocalFileTooLarge extends Error {
  override readonly name = 'LocalFileTooLarge';
}

/** The local files of one drive, by path. Durable. */
export interface LocalFileStore {
  get(path: Path): Promise<LocalFile | undefined>;
  read(path: Path): Promise<Uint8Array | undefined>;
  /** Returns the files directly in `folder`. */
  in(folder: Path): Promise<readonly LocalFile[]>;
  /** Returns the files at `path` and below. */
  within(path: Path): Promise<readonly LocalFile[]>;
  /** Stores a file, in place of an existing one. Throws `LocalFileTooLarge`. */
  put(file: LocalFile, content: Uint8Array): Promise<void>;
  touch(path: Path, modifiedMs: number): Promise<void>;
  /** Removes the files at `path` and below. */
  forget(path: Path): Promise<void>;
  /** Moves the files at `from` and below, and replaces those at `to`. */
  move(from: Path, to: Path): Promise<void>;
  /** Copies the files at `from` and below; the copies get ids from `newId`. */
  copy(from: Path, to: Path, newId: () => string): Promise<void>;
}
