import { join } from 'node:path';
import type { Disk, DiskFile } from './disk.ts';

/** A block that is arriving. */
export interface IncomingFile {
  readonly path: string;
  readonly file: DiskFile;
}

/** The files of blocks that are arriving, in the folder `incoming`. They do not survive a restart. */
export class IncomingFiles {
  readonly #folder: string;
  #count = 0;

  constructor(
    dataDirectory: string,
    private readonly disk: Disk,
  ) {
    this.#folder = join(dataDirectory, 'incoming');
  }

  /** Creates the folder, or removes the files in it. */
  async prepare(): Promise<void> {
    await this.disk.makeFolder(this.#folder);
    for await (const name of this.disk.names(this.#folder)) await this.disk.remove(join(this.#folder, name));
  }

  /** Creates an empty file. */
  async create(): Promise<IncomingFile> {
    const path = join(this.#folder, String(this.#count++));
    return { path, file: await this.disk.create(path) };
  }

  /** Closes and removes a file; after a failure the next start removes it. May be called twice. */
  async drop(incoming: IncomingFile): Promise<void> {
    await incoming.file.close().catch(() => undefined);
    await this.disk.remove(incoming.path).catch(() => undefined);
  }
}
