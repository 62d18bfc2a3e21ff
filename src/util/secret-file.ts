import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Puts `text` into `file`, for its owner alone: whole and on disk when it returns, or as it was before. */
export async function writeSecret(file: string, text: string): Promise<void> {
  const written = `${file}.new`;
  // A file that is left of an earlier try would keep the rights that it had.
  await rm(written, { force: true });
  const handle = await open(written, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(written, file);
  await syncDirectory(dirname(file));
}

export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
