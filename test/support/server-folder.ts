import { mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';

/** Free memory, in bytes, with which the files of a few servers leave enough for other tests. */
const FREE_BYTES_MIN = 1024 ** 3;

/**
 * Makes a folder for the files of a database server: in memory if there is room, where they outlive a killed process too.
 * On a disk that other tests keep busy a write may take longer than davgate waits.
 */
export async function serverFolder(name: string): Promise<string> {
  return mkdtemp(join(await root(), `davgate-${name}-`));
}

async function root(): Promise<string> {
  try {
    const { bavail, bsize } = await statfs(MEMORY);
    return bavail * bsize >= FREE_BYTES_MIN ? MEMORY : tmpdir();
  } catch {
    return tmpdir(); // macOS has none
  }
}
