import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { cp, mkdir, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { PROJECT_ROOT } from './build.ts';

/** Installed packages make a real tree: deep, thousands of files, odd names, from 0 bytes to some MiB. */
const REAL_PACKAGES = [
  'knip',
  'zod',
  'typescript',
  'webdav-server',
  'undici',
  'better-sqlite3/lib',
  '@types/node',
];

/** Copies a real tree of over 2,000 files to `target`, links resolved; resolves with the number of files. */
export async function makeRealTree(target: string): Promise<number> {
  for (const name of REAL_PACKAGES) {
    await mkdir(target, { recursive: true });
    await cp(join(PROJECT_ROOT, 'node_modules', name), join(target, name), {
      recursive: true,
      dereference: true,
    });
  }
  return (await digestTree(target)).size;
}

/** The SHA-256 of each file below `root`, by its path there. */
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
