import { UNANSWERED } from './answers.ts';

/** What a reader finds where there is no file. */
export const ABSENT = Symbol('absent');

/** A part of a file, in bytes. */
export interface Part {
  readonly start: number;
  readonly end: number;
}

/** Where files are written and read. Whatever is no answer that a client can rely on is `UNANSWERED`. */
export interface FileStore {
  /** Writes a file in place of an existing one. */
  write(path: string, text: string): Promise<typeof UNANSWERED | 'done'>;
  /** Removes a file for good. Succeeds if there is none. */
  remove(path: string): Promise<typeof UNANSWERED | 'done'>;
  read(path: string, part: Part): Promise<string | typeof ABSENT | typeof UNANSWERED>;
}

/** Characters of the files, by their number: small ones are in the database, larger ones are one block or two. */
const SIZES = [100, 70_000, 200_000, 4_500_000];

/** A file that one writer changes again and again. */
interface VersionedFile {
  readonly path: string;
  /**
   * Numbers of versions in the order of the attempts to write them, the first one for the file's absence. The texts of an hour
   * would fill the memory.
   */
  readonly attempts: (number | typeof ABSENT)[];
  /** The last attempt that was acknowledged. */
  acknowledged: number;
}

/** The files of one writer, each of which is always in a state that an attempt since the last acknowledged one has made. */
export class VersionedFiles {
  readonly #files: readonly VersionedFile[];
  acknowledged = 0;
  unanswered = 0;

  /** After so many versions of a file its texts begin again. */
  constructor(
    name: string,
    private readonly texts = Number.POSITIVE_INFINITY,
  ) {
    this.#files = SIZES.map((_, index) => ({
      path: `/${name}/${index}`,
      attempts: [ABSENT],
      acknowledged: 0,
    }));
  }

  /** Writes the next version of a file, which is equal to that of another writer. */
  async write(store: FileStore, index: number): Promise<void> {
    const file = this.#at(index);
    const version = file.attempts.length % this.texts;
    const text = textOf(index % SIZES.length, version);
    await this.#attempt(file, version, () => store.write(file.path, text));
  }

  /** Removes a file for good. */
  async remove(store: FileStore, index: number): Promise<void> {
    const file = this.#at(index);
    await this.#attempt(file, ABSENT, () => store.remove(file.path));
  }

  async #attempt(
    file: VersionedFile,
    version: VersionedFile['attempts'][number],
    make: () => Promise<typeof UNANSWERED | 'done'>,
  ): Promise<void> {
    const number = file.attempts.push(version) - 1;
    if ((await make()) === UNANSWERED) this.unanswered += 1;
    else {
      this.acknowledged += 1;
      file.acknowledged = number;
    }
  }

  /** Reads a part of a file, and throws unless it is one of the versions that may be there. */
  async verify(store: FileStore, index: number, share: { start: number; end: number }): Promise<boolean> {
    const file = this.#at(index);
    const since = file.acknowledged;
    const size = SIZES[index % SIZES.length] ?? 0;
    const part = { start: Math.floor(size * share.start), end: Math.ceil(size * share.end) };
    const found = await store.read(file.path, part);
    if (found === UNANSWERED) return false;
    const possible = file.attempts
      .slice(since)
      .map((version) =>
        version === ABSENT ? ABSENT : textOf(index % SIZES.length, version).slice(part.start, part.end),
      );
    if (possible.includes(found)) return true;
    const shown = found === ABSENT ? 'nothing' : `${found.length} characters: ${found.slice(0, 100)}`;
    throw new Error(`${file.path} from ${part.start} to ${part.end}, version ${since} or later: ${shown}`);
  }

  /** Removes all files for good. */
  async removeAll(store: FileStore): Promise<void> {
    for (const index of SIZES.keys()) await this.remove(store, index);
  }

  /** Reads all files whole until each has an answer. */
  async verifyAll(store: FileStore): Promise<void> {
    for (const index of SIZES.keys()) while (!(await this.verify(store, index, { start: 0, end: 1 })));
  }

  #at(index: number): VersionedFile {
    const file = this.#files[index % SIZES.length];
    if (!file) throw new Error('there are no files');
    return file;
  }
}

function textOf(index: number, version: number): string {
  const size = SIZES[index] ?? 0;
  return `file ${index} version ${version} `.repeat(Math.ceil(size / 18)).slice(0, size);
}
