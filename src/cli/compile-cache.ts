import { statSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { makeFolder } from '../util/make-folder.ts';

/** Exists since Node 22.1; the types are those of Node 20. */
const { enableCompileCache } = module as { readonly enableCompileCache?: (directory: string) => unknown };

const OTHERS_MAY_WRITE = 0o022;

/**
 * Keeps what V8 compiles from now on in `code/` of the cache directory, so that the next start need not compile it; also
 * that of later threads. Does nothing on a Node without that function and in a directory that cannot be used: V8 would
 * run what others put there.
 */
export function keepCompiledCode(cacheDirectory: string): void {
  if (!enableCompileCache) return;
  const directory = join(cacheDirectory, 'code');
  try {
    // Node would make it too, but tries forever in a folder such as `/proc`.
    makeFolder(directory);
    if (!isOurs(directory)) return;
  } catch {
    return;
  }
  enableCompileCache(directory);
  process.env['NODE_COMPILE_CACHE'] ??= directory;
}

/** Whether only this user may change `folder`. */
function isOurs(folder: string): boolean {
  const { uid, mode } = statSync(folder);
  // Windows has neither.
  return process.getuid === undefined || (uid === process.getuid() && (mode & OTHERS_MAY_WRITE) === 0);
}
