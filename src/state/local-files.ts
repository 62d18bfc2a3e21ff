import type { Path } from '../util/path.ts';

/** A small file of a desktop system, which is kept on this machine and never sent to the service. */
export interface LocalFile {
  readonly path: Path;
  readonly id: string;
  readonly rev: string;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
}

/** A local file is larger than `fileBytesMax`; nothing of it is stored. */
export class LocalFileTooLarge extends Error {
  override readonly name = 'LocalFileTooLarge';
}

/** The local files of one drive, by path. Durable, but for the oldest, which make room for new ones. */
export interface LocalFileStore {
  /** Maximum size of a file, in bytes. */
  readonly fileBytesMax: number;
  get(path: Path): Promise<LocalFile | undefined>;
  read(path: Path): Promise<Uint8Array | undefined>;
  /** Returns the files directly in `folder`. */
  in(folder: Path): Promise<readonly LocalFile[]>;
  /** Returns the files at `path` and below, at most `filesMax` of them. */
  within(path: Path, filesMax?: number): Promise<readonly LocalFile[]>;
  /** Stores a file, in place of an existing one. Throws `LocalFileTooLarge`. */
  put(file: LocalFile, content: Uint8Array): Promise<void>;
  touch(path: Path, modifiedMs: number): Promise<void>;
  /** Removes the files at `path` and below; many in several changes, a folder after what it contains. Returns their ids. */
  forget(path: Path): Promise<readonly string[]>;
  /** Moves the files at `from` and below, and replaces those at `to`. */
  move(from: Path, to: Path): Promise<void>;
  /** Copies the files at `from` and below; the copies get ids from `newId`. */
  copy(from: Path, to: Path, newId: () => string): Promise<void>;
}
