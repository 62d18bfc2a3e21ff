import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const PROJECT_ROOT = join(import.meta.dirname, '..', '..');

/** Builds the program once, for the tests that start it or its modules as processes. vitest's global setup. */
export function setup(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: PROJECT_ROOT, stdio: 'inherit' });
}

/**
 * Returns the URL from which a child process imports the built `source`, a file in `src`. Node 20 cannot load
 * TypeScript.
 */
export function builtUrl(source: string): string {
  return pathToFileURL(join(PROJECT_ROOT, 'dist', source.replace(/\.ts$/, '.js'))).href;
}
