import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncDirectory } from './sync-directory.ts';

/** Writes `text` to `file`, readable by its owner only. The write is atomic, and durable when this returns. */
export async function writeSecret(file: string, text: string): Promise<void> {
  const written = `${file}.new`;
  // A file left by an earlier try would keep its permissions.
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
