import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder of package.json: the checkout, or the installed package. */
export const PACKAGE_ROOT = fileURLToPath(new URL('../..', import.meta.url));

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(`${PACKAGE_ROOT}/package.json`, 'utf8')) as { version: string }; // our own file
  return version;
}
