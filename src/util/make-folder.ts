import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder for this user alone, and those above it that are missing; those it made, from the top down. Throws
 * the file system's own error. Not Node's recursive `mkdir`: where a folder can never be made although the one above
 * is there, as in `/proc`, that tries for ever (seen with Node 20.20).
 */
export function makeFolder(path: string): readonly string[] {
  const missing: string[] = [];
  let folder = resolve(path);
  while (!isThere(folder)) {
    missing.unshift(folder);
    folder = dirname(folder);
  }
  // Something else than a folder may be there: making it says so.
  for (const one of missing.length > 0 ? missing : [folder]) make(one);
  return missing;
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
