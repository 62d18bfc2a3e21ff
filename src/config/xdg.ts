import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Where this user's programs keep their data (XDG Base Directory Specification). */
export function dataHome(environment: NodeJS.ProcessEnv): string {
  return absolute(environment['XDG_DATA_HOME']) ?? join(homedir(), '.local/share');
}

/** Where they keep what can be made again. */
export function cacheHome(environment: NodeJS.ProcessEnv): string {
  return absolute(environment['XDG_CACHE_HOME']) ?? join(homedir(), '.cache');
}

/** An empty or relative one counts as none, says the specification: it would be another place in each folder. */
function absolute(directory: string | undefined): string | undefined {
  return directory !== undefined && isAbsolute(directory) ? directory : undefined;
}
