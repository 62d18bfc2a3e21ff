import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** Where `davgate service` keeps its files: what `--data` says, or its place among the user's data. */
export function serviceDirectory(data: unknown, environment: NodeJS.ProcessEnv): string {
  const home = environment['XDG_DATA_HOME'] ?? join(homedir(), '.local/share');
  return resolve(typeof data === 'string' && data !== '' ? data : join(home, 'davgate-service'));
}
