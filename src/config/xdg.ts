import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Returns the directory for this user's data (XDG Base Directory Specification). */
export function dataHome(environment: NodeJS.ProcessEnv): string {
  return absolute(environment['XDG_DATA_HOME']) ?? join(homedir(), '.local/share');
}

/** Returns the directory for this user's settings. */
export function configHome(environment: NodeJS.ProcessEnv): string {
  return absolute(environment['XDG_CONFIG_HOME']) ?? join(homedir(), '.config');
}

/** Returns the directory for this user's caches. */
export function cacheHome(environment: NodeJS.ProcessEnv): string {
  return absolute(environment['XDG_CACHE_HOME']) ?? join(homedir(), '.cache');
}

/** Ignores an empty or relative path, as the specification asks. */
function absolute(directory: string | undefined): string | undefined {
  return directory !== undefined && isAbsolute(directory) ? directory : undefined;
}
