import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Rclone } from './rclone.ts';

/**
 * Syncs a new folder to `drive:synced`, changes, renames and deletes files in it, syncs again and compares
 * every byte with rclone. Returns the listing, which must be `changes`, `comes` and `renamed`.
 */
export async function syncTwice(rclone: Rclone, folder: string, ...options: string[]): Promise<string[]> {
  await mkdir(join(folder, 'folder'), { recursive: true });
  for (const name of ['stays', 'changes', 'goes', 'folder/goes too'])
    await writeFile(join(folder, name), `${name}, first`);
  await rclone.run('sync', folder, 'drive:synced');
  await writeFile(join(folder, 'changes'), 'changed, and longer than before');
  await writeFile(join(folder, 'comes'), 'new');
  await rename(join(folder, 'stays'), join(folder, 'renamed'));
  await rm(join(folder, 'goes'));
  await rm(join(folder, 'folder'), { recursive: true });
  await rclone.run('sync', ...options, folder, 'drive:synced');
  await rclone.run('check', '--download', folder, 'drive:synced');
  const { stdout } = await rclone.run('lsf', '-R', 'drive:synced');
  return stdout.trim().split('\n').sort();
}
