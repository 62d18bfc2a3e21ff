import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder for this user alone, and those above it that are missing; those it made, from the top down. A power
 * cut takes none of them back: the folder above each is synced. Throws the file system's own error. Not Node's recursive `mkdir`: where a folder can never be made although the one above
 * is there, as in `/proc`, that tries for ever (seen with Node 20.20).
 */
export function makeFolder(path: string, syncFolder = syncNames): readonly string[] {
  const missing: string[] = [];
  let folder = resolve(path);
  while (!isThere(folder)) {
    missing.unshift(folder);
    folder = dirname(folder);
  }
  // Something else than a folder may be there: making it says so.
  for (const one of missing.length > 0 ? missing : [folder]) make(one);
  for (const one of missing) syncFolder(dirname(one));
  return missing;
}

/** Brings the names in `folder` to the disk. Throws the file system's own error. */
export function syncNames(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** No error when it is there: another process may make it at the same moment. */
function make(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (failure) {
    const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory();
    if (!isFolder) throw failure;
  }
}
