import { join, resolve } from 'node:path';
import { dataHome } from '../config/xdg.ts';

/** Where `davgate service` keeps its files: what `--data` says, or its place among the user's data. */
export function serviceDirectory(data: unknown, environment: NodeJS.ProcessEnv): string {
  return resolve(
    typeof data === 'string' && data !== '' ? data : join(dataHome(environment), 'davgate-service'),
  );
}
