import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// The build puts this code into a file of `dist/chunks/`, which is as deep as `src/util/`.

/** The folder of package.json: the checkout, or the installed package. */
export const PACKAGE_ROOT = join(import.meta.dirname, '../..');

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    version: string;
  }; // our own file
  return version;
}

/** Returns the URL of a built program of davgate's that has a thread or process of its own: `service/thread.js`. */
export function programUrl(file: string): URL {
  return pathToFileURL(join(PACKAGE_ROOT, 'dist', file));
}
