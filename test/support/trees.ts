import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { cp, mkdir, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { PROJECT_ROOT } from './build.ts';
import { effort } from './effort.ts';

/** Installed packages as a real tree: deep, thousands of files, odd names, from 0 bytes to some MiB. */
const REAL_PACKAGES = [
  'better-sqlite3/lib',
  '@types/node',
  'undici',
  'knip',
  'zod',
  'typescript',
  'webdav-server',
];

/**
 * Copies a real tree of over 80 files, or over 2,000 in a long run, to `target` with links resolved. Resolves
 * with the number of files.
 */
export async function makeRealTree(target: string): Promise<number> {
  for (const name of REAL_PACKAGES.slice(0, effort(2))) {
    await mkdir(target, { recursive: true });
    await cp(join(PROJECT_ROOT, 'node_modules', name), join(target, name), {
      recursive: true,
      dereference: true,
    });
  }
  return (await digestTree(target)).size;
}

/** Returns the SHA-256 of each file below `root` by its relative path. */
export async function digestTree(root: string): Promise<Map<string, string>> {
  const digests = new Map<string, string>();
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) digests.set(relative(root, path).normalize('NFC'), await digestFile(path));
  }
  return digests;
}

async function digestFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer); // no encoding set: buffers
  return hash.digest('hex');
}
