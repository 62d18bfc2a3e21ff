import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { syncDirectorySync } from './sync-directory.ts';

/**
 * Makes a folder that only this user can open, and its missing parents. Returns the made folders from the top down. Syncs
 * the parent of each, so that they survive a power cut. Throws the file system's own error. Does not use Node's recursive
 * `mkdir`, which tries forever in a folder such as `/proc` that takes no folders (seen with Node 20.20).
 */
export function makeFolder(path: string, syncFolder = syncDirectorySync): readonly string[] {
  const missing: string[] = [];
  let folder = resolve(path);
  while (!isThere(folder)) {
    missing.unshift(folder);
    folder = dirname(folder);
  }
  // If a file has this name, `mkdir` throws.
  for (const one of missing.length > 0 ? missing : [folder]) make(one);
  for (const one of missing) syncFolder(dirname(one));
  return missing;
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Makes a folder. Accepts an existing one, because another process may make it at the same time. */
function make(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (failure) {
    const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory();
    if (!isFolder) throw failure;
  }
}
