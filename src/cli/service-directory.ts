import { join, resolve } from 'node:path';
import { dataHome } from '../config/xdg.ts';

/** Returns the directory of `davgate service`: `data` (`--data`), or the default in the user's data directory. */
export function serviceDirectory(data: unknown, environment: NodeJS.ProcessEnv): string {
  return resolve(
    typeof data === 'string' && data !== '' ? data : join(dataHome(environment), 'davgate-service'),
  );
}
