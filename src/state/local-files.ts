import type { Path } from '../util/path.ts';

/** A small file that desktop systems leave behind and that never goes to the service. */
export interface LocalFile {
  readonly path: Path;
  readonly id: string;
  readonly rev: string;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
}

/** One set-aside file may have this size; AppleDouble files with a resource fork are the largest seen. */
export const LOCAL_FILE_BYTES_MAX = 16 * 1024 * 1024;

/** All set-aside files of a drive together; beyond it the oldest make room. */
export const LOCAL_FILES_BYTES_MAX = 1024 * 1024 * 1024;

/** Of set-aside content beyond `LOCAL_FILE_BYTES_MAX`; nothing is kept of it. */
export class LocalFileTooLarge extends Error {
  override readonly name = 'LocalFileTooLarge';
}

/** The set-aside files and folders' litter of one drive, by path. Durable. */
export interface LocalFileStore {
  get(path: Path): Promise<LocalFile | undefined>;
  read(path: Path): Promise<Uint8Array | undefined>;
  /** Those directly in `folder`. */
  in(folder: Path): Promise<readonly LocalFile[]>;
  /** Those at `path` and below. */
  within(path: Path): Promise<readonly LocalFile[]>;
  /** In place of what is at its path. Throws `LocalFileTooLarge`. */
  put(file: LocalFile, content: Uint8Array): Promise<void>;
  touch(path: Path, modifiedMs: number): Promise<void>;
  /** At `path` and below. */
  forget(path: Path): Promise<void>;
  /** At `from` and below; what is at `to` is replaced. */
  move(from: Path, to: Path): Promise<void>;
  /** At `from` and below; ids are made anew by `newId`. */
  copy(from: Path, to: Path, newId: () => string): Promise<void>;
}
