import { randomUUID } from 'node:crypto';
import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../util/clock.ts';
import type { Log } from '../../../util/log.ts';
import { makeFolder } from '../../../util/make-folder.ts';
import { localDisk } from '../blocks/disk.ts';
import { IncomingFiles } from '../blocks/incoming-files.ts';

const PREFIX = 'process-';

/** Time between two notes of use, in ms: others remove a folder that has none for a day. */
const NOTED_EVERY_MS = 60 * 60 * 1000;

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

  /** Notes every hour that the process lives, whatever else takes long, until `closing` is aborted. Never rejects. */
  async noteUses(clock: Clock, log: Log, closing: AbortSignal): Promise<void> {
    while (!closing.aborted) {
      await this.#noteUse(clock.now()).catch((error: unknown) => {
        log.warn('the folder for arriving blocks could not be marked as in use', { error: String(error) });
      });
      await clock.sleep(NOTED_EVERY_MS, closing).catch(() => undefined);
    }
  }

  /** Creates the folder again if others have taken it for that of a dead process. */
  async #noteUse(nowMs: number): Promise<void> {
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
