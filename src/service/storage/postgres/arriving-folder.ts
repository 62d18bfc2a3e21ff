import { randomUUID } from 'node:crypto';
import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../../util/make-folder.ts';
import { localDisk } from '../blocks/disk.ts';
import { IncomingFiles } from '../blocks/incoming-files.ts';

const PREFIX = 'process-';

/**
 * A process's own folder for arriving blocks, beside the blocks that processes share. That of a killed process stays, until
 * another one finds that it has not been used for long.
 */
export class ArrivingFolder {
  readonly incoming: IncomingFiles;
  readonly #own: string;

  private constructor(private readonly shared: string) {
    this.#own = join(shared, `${PREFIX}${randomUUID()}`);
    this.incoming = new IncomingFiles(this.#own, localDisk);
  }

  /** Creates a folder in `shared`. */
  static async in(shared: string): Promise<ArrivingFolder> {
    const folder = new ArrivingFolder(shared);
    makeFolder(folder.#own);
    await folder.incoming.prepare();
    return folder;
  }

  /** Notes that the process lives. Creates the folder again if others have taken it for that of a dead one. */
  async noteUse(nowMs: number): Promise<void> {
    makeFolder(join(this.#own, 'incoming'));
    await utimes(this.#own, nowMs / 1000, nowMs / 1000);
  }

  /** Removes the folders of processes that have not noted their use since `beforeMs`. */
  async removeUnused(beforeMs: number): Promise<void> {
    for (const name of await readdir(this.shared)) {
      const folder = join(this.shared, name);
      if (!name.startsWith(PREFIX) || folder === this.#own) continue;
      // A process that ends removes its folder.
      const found = await stat(folder).catch(() => undefined);
      if (found && found.mtimeMs < beforeMs) await rm(folder, { recursive: true, force: true });
    }
  }

  /** Removes the folder. */
  async close(): Promise<void> {
    await rm(this.#own, { recursive: true, force: true });
  }
}
