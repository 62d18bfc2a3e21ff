import { randomUUID } from 'node:crypto';
import type { AroundCommit } from '../api/remote.ts';
import type { LocalFile, LocalFileStore } from '../state/local-files.ts';
import type { Clock } from '../util/clock.ts';
import { nameOf, type Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';
import { FileError, replaced } from './errors.ts';
import type { Entry, FileEntry, FolderEntry, WriteMode, WriteOptions, Written } from './files.ts';
import { isLitter, isWithinLitter } from './names.ts';

/** Prefix of the ids. Stored ids and revisions begin with `aside` since the first version. */
const ID = 'aside:';

/** Revision of a local folder, which is stored as an empty file. */
const FOLDER_REV = 'aside-folder';

/** Maximum number of local files that are moved or copied at once: the state does nothing else meanwhile. */
const RELOCATED_MAX = 10_000;

const NOTHING = new Uint8Array(0);

/**
 * What a drive does with local files: `keep` refuses one that is too large, `drop` accepts it and stores nothing of it,
 * and `send` knows no local files and sends them to the service like all others.
 */
export type LocalFilesPolicy = 'keep' | 'drop' | 'send';

/**
 * Local files: what desktop systems leave in every folder (`.DS_Store`, `._*`, `Thumbs.db`), and folders like `.Trashes`
 * with everything below. They are kept on this machine and never sent to the service.
 */
export class LocalFiles {
  /**
   * Serialises check and change: of two writes that may only create, one wins. The state commits large moves and copies
   * one by one, so that other requests are answered between them.
   */
  #turn: Promise<unknown> = Promise.resolve();

  /** Whether `path` belongs to a local file. */
  readonly owns: (path: Path) => boolean;

  /** Returns the local files directly in a folder. */
  readonly in: LocalFileStore['in'];

  /** Returns the local files at a path and below. */
  readonly within: LocalFileStore['within'];

  /** Maximum size of a local file, in bytes. */
  readonly fileBytesMax: number;

  constructor(
    private readonly store: LocalFileStore,
    private readonly clock: Clock,
    private readonly policy: LocalFilesPolicy,
  ) {
    const isOn = policy !== 'send';
    this.fileBytesMax = store.fileBytesMax;
    this.owns = isOn ? isWithinLitter : () => false;
    this.in = isOn ? store.in : async () => [];
    this.within = isOn ? store.within : async () => [];
  }

  /** Whether an entry called `name` is a local file, whatever folder it is in. */
  ownsName(name: string): boolean {
    return this.policy !== 'send' && isLitter(name);
  }

  async stat(path: Path): Promise<Entry | undefined> {
    const file = await this.store.get(path);
    return file && localEntry(file);
  }

  /** Throws `busy` when another revision is there. */
  async read(file: FileEntry, range: ByteRange | undefined): Promise<Uint8Array> {
    // The revision last: it shows that the content is not a newer one.
    const content = await this.store.read(file.path);
    const kept = await this.store.get(file.path);
    if (!content) throw new FileError('not-found', `${file.path} is not there`);
    if (kept?.rev !== file.rev) throw replaced(file.path);
    return range ? content.subarray(range.start, range.end) : content;
  }

  /** Reads all of `body` and stores it inside `aroundCommit`. */
  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    aroundCommit: AroundCommit,
  ): Promise<Written> {
    const { content, sizeBytes } = await received(body, this.fileBytesMax, this.policy === 'drop');
    if (!content && this.policy !== 'drop')
      throw new FileError(
        'too-large',
        `${path} is a local file and may have at most ${this.fileBytesMax} bytes`,
      );
    if (options.sizeBytes !== undefined && options.sizeBytes !== sizeBytes)
      throw new FileError('incomplete', `${path}: ${sizeBytes} of ${options.sizeBytes} bytes arrived`);
    return aroundCommit(() => this.#replace(path, { content, sizeBytes }, options));
  }

  #replace(path: Path, { content, sizeBytes }: Received, options: WriteOptions): Promise<Written> {
    return this.#alone(async () => {
      const old = await this.stat(path);
      if (old?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
      if (!modeAllows(options.mode, old)) throw new FileError('changed', `${path} is not what was expected`);
      const file = {
        path,
        id: old?.id ?? newId(),
        rev: `aside-${randomUUID()}`,
        modifiedMs: options.modifiedMs ?? this.clock.now(),
        sizeBytes,
      };
      // The client believes that its old content is gone.
      await (content ? this.store.put(file, content) : this.store.forget(path));
      return { entry: localEntry(file), created: old === undefined };
    });
  }

  createFolder(path: Path): Promise<FolderEntry> {
    return this.#alone(async () => {
      if (await this.store.get(path)) throw new FileError('exists', `something is at ${path} already`);
      const folder = { path, id: newId(), rev: FOLDER_REV, modifiedMs: this.clock.now(), sizeBytes: 0 };
      await this.store.put(folder, NOTHING);
      return folderOf(folder);
    });
  }

  touch(path: Path, modifiedMs: number): Promise<void> {
    return this.store.touch(path, modifiedMs);
  }

  /** Forgets what is at `path` and below. Returns the ids of what was there. */
  forget(path: Path): Promise<readonly string[]> {
    return this.store.forget(path);
  }

  /**
   * Returns whether something is at `path` or below. Throws `too-many` when it is more than can be moved, copied or
   * replaced at once.
   */
  async hasMovable(path: Path): Promise<boolean> {
    const { length } = await this.store.within(path, RELOCATED_MAX + 1);
    if (length > RELOCATED_MAX)
      throw new FileError('too-many', `${path} holds more than ${RELOCATED_MAX} local files`);
    return length > 0;
  }

  /** Moves what is at `from` and below, and replaces what is at `to`. */
  move(from: Path, to: Path): Promise<void> {
    return this.#alone(() => this.store.move(from, to));
  }

  /** Copies what is at `from` and below, and replaces what is at `to`. */
  copy(from: Path, to: Path): Promise<void> {
    return this.#alone(() => this.store.copy(from, to, newId));
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done;
    return done;
  }
}

/** Whether `mode` allows a write where `old` is. */
export function modeAllows(mode: WriteMode, old: Entry | undefined): boolean {
  if (mode.if === 'any') return true;
  if (mode.if === 'absent') return old === undefined;
  return old?.kind === 'file' && old.rev === mode.rev;
}

function newId(): string {
  return `${ID}${randomUUID()}`;
}

/** Returns the entry that a local file is shown as. */
export function localEntry(file: LocalFile): Entry {
  if (file.rev === FOLDER_REV) return folderOf(file);
  const { path, id, rev, modifiedMs, sizeBytes } = file;
  return { kind: 'file', id, path, name: nameOf(path), rev, sizeBytes, modifiedMs, committedMs: modifiedMs };
}

function folderOf({ path, id, modifiedMs }: LocalFile): FolderEntry {
  return { kind: 'folder', id, path, name: nameOf(path), modifiedMs };
}

/** A body that has arrived. */
interface Received {
  /** `undefined` if it is too large. */
  readonly content: Uint8Array | undefined;
  readonly sizeBytes: number;
}

/** Reads a body, of one with more than `bytesMax` only the beginning unless `toItsEnd`. Holds at most `bytesMax` bytes. */
async function received(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
  toItsEnd: boolean,
): Promise<Received> {
  let chunks: Uint8Array[] | undefined = [];
  let sizeBytes = 0;
  for await (const chunk of body) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > bytesMax) chunks = undefined;
    if (!chunks && !toItsEnd) break;
    chunks?.push(chunk);
  }
  return { content: chunks && Buffer.concat(chunks), sizeBytes };
}
