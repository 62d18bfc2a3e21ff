import { constants } from 'node:fs';
import { access, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigError } from '../config/settings.ts';

/** A file with davgate's address, which is there while clients can connect: scripts wait for it. */
export class ReadyFile {
  private constructor(private readonly file: string) {}

  /** Removes the file of a davgate that was killed. Throws `ConfigError` where no file can be made. */
  static async prepare(file: string): Promise<ReadyFile> {
    await orRefuse(file, async () => {
      await access(dirname(file), constants.W_OK);
      await rm(file, { force: true });
    });
    return new ReadyFile(file);
  }

  /** Makes the file, whole from its first moment. */
  async write(address: string): Promise<void> {
    const unfinished = `${this.file}.${process.pid}`;
    await orRefuse(this.file, async () => {
      await writeFile(unfinished, `${address}\n`);
      await rename(unfinished, this.file);
    });
  }

  async remove(): Promise<void> {
    await rm(this.file, { force: true });
  }
}

async function orRefuse(file: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(
      `--ready-file: cannot write ${file} (${code}); make its folder, or change the permissions`,
    );
  }
}
